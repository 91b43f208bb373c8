define amdgpu_kernel void @stored(ptr addrspace(1) %data, ptr addrspace(1) %count) {
  store i32 1, ptr addrspace(1) %data
  %before = atomicrmw add ptr addrspace(1) %count, i32 1 syncscope("agent") release
  ret void
}

define amdgpu_kernel void @counted(ptr addrspace(1) %count) {
  %before = atomicrmw add ptr addrspace(1) %count, i32 1 syncscope("agent") release
  ret void
}

!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
