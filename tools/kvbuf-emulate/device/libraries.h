// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the host's part of a source asks NVIDIA's libraries for, so that it
// compiles; as in kvbuf_host.h nothing of it is executed.

#pragma once
#include <kvbuf_half.h>

#define CUBLAS_API_H_ // which NVIDIA's samples ask for

#define KVBUF_CHOICES(NAME, ...) enum NAME { __VA_ARGS__ };
#define KVBUF_FUNCTION(RESULT, NAME)                                           \
  template <typename... Arguments>                                             \
  static inline __host__ RESULT NAME(Arguments &&...) {                        \
    return RESULT(0);                                                          \
  }

KVBUF_CHOICES(cudaDataType_t, CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF,
              CUDA_R_8I, CUDA_R_8U, CUDA_R_32I, CUDA_R_8F_E4M3, CUDA_R_8F_E5M2,
              CUDA_C_32F, CUDA_C_64F)
typedef cudaDataType_t cudaDataType;

// cuBLAS.
typedef struct kvbufBlas *cublasHandle_t;
KVBUF_CHOICES(cublasStatus_t, CUBLAS_STATUS_SUCCESS,
              CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_ALLOC_FAILED,
              CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_ARCH_MISMATCH,
              CUBLAS_STATUS_MAPPING_ERROR, CUBLAS_STATUS_EXECUTION_FAILED,
              CUBLAS_STATUS_INTERNAL_ERROR, CUBLAS_STATUS_NOT_SUPPORTED,
              CUBLAS_STATUS_LICENSE_ERROR)
KVBUF_CHOICES(cublasOperation_t, CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C)
KVBUF_CHOICES(cublasFillMode_t, CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER)
KVBUF_CHOICES(cublasSideMode_t, CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT)
KVBUF_CHOICES(cublasDiagType_t, CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT)
KVBUF_CHOICES(cublasPointerMode_t, CUBLAS_POINTER_MODE_HOST,
              CUBLAS_POINTER_MODE_DEVICE)
KVBUF_CHOICES(cublasMath_t, CUBLAS_DEFAULT_MATH, CUBLAS_TENSOR_OP_MATH,
              CUBLAS_PEDANTIC_MATH, CUBLAS_TF32_TENSOR_OP_MATH)
KVBUF_CHOICES(cublasComputeType_t, CUBLAS_COMPUTE_16F, CUBLAS_COMPUTE_32F,
              CUBLAS_COMPUTE_32F_FAST_16F, CUBLAS_COMPUTE_32F_FAST_16BF,
              CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_64F,
              CUBLAS_COMPUTE_32I)
KVBUF_CHOICES(cublasGemmAlgo_t, CUBLAS_GEMM_DEFAULT,
              CUBLAS_GEMM_DEFAULT_TENSOR_OP)
// clang-format off
#define KVBUF_BLAS(NAME) KVBUF_FUNCTION(cublasStatus_t, cublas##NAME)
KVBUF_BLAS(Create) KVBUF_BLAS(Destroy) KVBUF_BLAS(SetStream)
KVBUF_BLAS(SetMathMode) KVBUF_BLAS(SetPointerMode) KVBUF_BLAS(SetWorkspace)
KVBUF_BLAS(SetVector) KVBUF_BLAS(GetVector) KVBUF_BLAS(SetMatrix)
KVBUF_BLAS(GetMatrix) KVBUF_BLAS(GemmEx) KVBUF_BLAS(GemmStridedBatchedEx)
KVBUF_BLAS(GemmBatchedEx)
#define KVBUF_BLAS_OF(NAME) KVBUF_BLAS(S##NAME) KVBUF_BLAS(D##NAME)
KVBUF_BLAS_OF(gemm) KVBUF_BLAS_OF(gemmBatched) KVBUF_BLAS_OF(gemmStridedBatched)
KVBUF_BLAS_OF(gemv) KVBUF_BLAS_OF(ger) KVBUF_BLAS_OF(dot) KVBUF_BLAS_OF(axpy)
KVBUF_BLAS_OF(scal) KVBUF_BLAS_OF(copy) KVBUF_BLAS_OF(nrm2) KVBUF_BLAS_OF(asum)
KVBUF_BLAS_OF(trsm) KVBUF_BLAS_OF(geam) KVBUF_BLAS(Hgemm)
KVBUF_BLAS(HgemmStridedBatched)
// clang-format on
#undef KVBUF_BLAS_OF

    // cuBLASLt.
    typedef struct kvbufBlasLt *cublasLtHandle_t;
typedef struct kvbufBlasLtDesc *cublasLtMatmulDesc_t;
typedef struct kvbufBlasLtPreference *cublasLtMatmulPreference_t;
typedef struct kvbufBlasLtLayout *cublasLtMatrixLayout_t;
struct cublasLtMatmulAlgo_t {};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
};
KVBUF_CHOICES(cublasLtEpilogue_t, CUBLASLT_EPILOGUE_DEFAULT,
              CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS,
              CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU,
              CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX,
              CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU,
              CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB)
KVBUF_CHOICES(cublasLtMatmulDescAttributes_t, CUBLASLT_MATMUL_DESC_TRANSA,
              CUBLASLT_MATMUL_DESC_TRANSB, CUBLASLT_MATMUL_DESC_EPILOGUE,
              CUBLASLT_MATMUL_DESC_BIAS_POINTER,
              CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
              CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
              CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
              CUBLASLT_MATMUL_DESC_SCALE_TYPE)
KVBUF_CHOICES(cublasLtMatrixLayoutAttribute_t, CUBLASLT_MATRIX_LAYOUT_ORDER,
              CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
              CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
KVBUF_CHOICES(cublasLtMatmulPreferenceAttributes_t,
              CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
// clang-format off
KVBUF_BLAS(LtCreate) KVBUF_BLAS(LtDestroy) KVBUF_BLAS(LtMatmul)
KVBUF_BLAS(LtMatmulDescCreate) KVBUF_BLAS(LtMatmulDescDestroy)
KVBUF_BLAS(LtMatmulDescSetAttribute) KVBUF_BLAS(LtMatrixLayoutCreate)
KVBUF_BLAS(LtMatrixLayoutDestroy) KVBUF_BLAS(LtMatrixLayoutSetAttribute)
KVBUF_BLAS(LtMatmulPreferenceCreate) KVBUF_BLAS(LtMatmulPreferenceDestroy)
KVBUF_BLAS(LtMatmulPreferenceSetAttribute)
KVBUF_BLAS(LtMatmulAlgoGetHeuristic)
// clang-format on
#undef KVBUF_BLAS

    // cuRAND, of the host.
    typedef struct kvbufRandom *curandGenerator_t;
KVBUF_CHOICES(curandStatus_t, CURAND_STATUS_SUCCESS)
KVBUF_CHOICES(curandRngType_t, CURAND_RNG_PSEUDO_DEFAULT,
              CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_PHILOX4_32_10)
// clang-format off
#define KVBUF_RANDOM(NAME) KVBUF_FUNCTION(curandStatus_t, curand##NAME)
KVBUF_RANDOM(CreateGenerator) KVBUF_RANDOM(DestroyGenerator)
KVBUF_RANDOM(SetPseudoRandomGeneratorSeed) KVBUF_RANDOM(GenerateUniform)
KVBUF_RANDOM(GenerateNormal) KVBUF_RANDOM(Generate) KVBUF_RANDOM(SetStream)
// clang-format on
#undef KVBUF_RANDOM

    // NCCL, and MPI beside it.
    typedef struct kvbufComm *ncclComm_t;
struct ncclUniqueId {
  char internal[128];
};
KVBUF_CHOICES(ncclResult_t, ncclSuccess, ncclInProgress)
KVBUF_CHOICES(ncclDataType_t, ncclInt8, ncclUint8, ncclInt32, ncclUint32,
              ncclInt64, ncclUint64, ncclFloat16, ncclHalf, ncclFloat32,
              ncclFloat, ncclFloat64, ncclDouble, ncclBfloat16)
KVBUF_CHOICES(ncclRedOp_t, ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg)
KVBUF_CHOICES(MPI_Comm, MPI_COMM_WORLD, MPI_COMM_NULL)
KVBUF_CHOICES(MPI_Datatype, MPI_DATATYPE_NULL, MPI_BYTE, MPI_INT, MPI_FLOAT,
              MPI_DOUBLE)
#define MPI_SUCCESS 0
#define MPI_IN_PLACE static_cast<void *>(nullptr)
typedef const char *kvbufText;
// clang-format off
#define KVBUF_NCCL(NAME) KVBUF_FUNCTION(ncclResult_t, nccl##NAME)
KVBUF_NCCL(GetUniqueId) KVBUF_NCCL(CommInitRank) KVBUF_NCCL(CommDestroy)
KVBUF_NCCL(AllReduce) KVBUF_NCCL(ReduceScatter) KVBUF_NCCL(AllGather)
KVBUF_NCCL(Broadcast) KVBUF_NCCL(Reduce) KVBUF_NCCL(Send) KVBUF_NCCL(Recv)
KVBUF_NCCL(GroupStart) KVBUF_NCCL(GroupEnd)
#undef KVBUF_NCCL
KVBUF_FUNCTION(kvbufText, ncclGetErrorString)
#define KVBUF_MPI(NAME) KVBUF_FUNCTION(int, MPI_##NAME)
KVBUF_MPI(Init) KVBUF_MPI(Finalize) KVBUF_MPI(Comm_rank) KVBUF_MPI(Comm_size)
KVBUF_MPI(Bcast) KVBUF_MPI(Allgather) KVBUF_MPI(Allreduce) KVBUF_MPI(Barrier)
KVBUF_MPI(Error_string) KVBUF_MPI(Abort)
// clang-format on
#undef KVBUF_MPI

    // Ranges for the profiler.
    KVBUF_FUNCTION(int, nvtxRangePushA) KVBUF_FUNCTION(int, nvtxRangePush)
        KVBUF_FUNCTION(int, nvtxRangePop) KVBUF_FUNCTION(int, nvtxMarkA)
#undef KVBUF_FUNCTION
#undef KVBUF_CHOICES
