// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-split-masked-loops)))' --split-input-file | FileCheck %s
// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-split-masked-loops)))' --split-input-file --remark-format=emitRemark --remarks-filter=kvbuf-split-masked-loops 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

!s = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // An edge on each side: [0, A) takes the branch, [A, B) does not, [B, n) does.
  // A and B are clamped to the loop, and B to what is behind A.
  // REMARK: remark: [Passed] split{{.*}}split into {{.*}}3{{.*}} loops, one without masks
  // CHECK-LABEL: gpu.func @both
  // CHECK-SAME:    %[[S:[^:]*]]: !kvbuffer.fragment<16x16xf32, acc>, %[[N:[^:]*]]: index, %[[A:[^:]*]]: index, %[[B:[^:]*]]: index
  // CHECK:         %[[A0:.*]] = arith.maxsi %[[A]], %c0
  // CHECK:         %[[A1:.*]] = arith.minsi %[[A0]], %[[N]]
  // CHECK:         %[[B0:.*]] = arith.maxsi %[[B]], %[[A1]]
  // CHECK:         %[[B1:.*]] = arith.minsi %[[B0]], %[[N]]
  // CHECK:         %[[R0:.*]] = scf.for %[[I0:.*]] = %c0 to %[[A1]] step %c1 iter_args(%{{.*}} = %[[S]])
  // CHECK-NOT:       scf.if
  // CHECK:           kvbuffer.mask
  // CHECK:         %[[R1:.*]] = scf.for %[[I1:.*]] = %[[A1]] to %[[B1]] step %c1 iter_args(%[[ACC:.*]] = %[[R0]])
  // CHECK-NOT:       scf.if
  // CHECK-NOT:       kvbuffer.mask
  // CHECK:           scf.yield %[[ACC]]
  // CHECK:         scf.for %[[I2:.*]] = %[[B1]] to %[[N]] step %c1 iter_args(%{{.*}} = %[[R1]])
  // CHECK-NOT:       scf.if
  // CHECK:           kvbuffer.mask
  // CHECK-NOT:     scf.for
  gpu.func @both(%s: !s, %n: index, %a: index, %b: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %s) -> !s {
      %right = arith.cmpi slt, %i, %a : index
      %left = arith.cmpi sge, %i, %b : index
      %edge = arith.ori %right, %left : i1
      %m = scf.if %edge -> !s {
        %h = kvbuffer.mask %acc rows(%i, %n) keys(%i, %n) {mask = #kvbuffer.mask<>} : !s
        scf.yield %h : !s
      } else {
        scf.yield %acc : !s
      }
      scf.yield %m : !s
    }
    gpu.return
  }
}

// -----

!s = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // REMARK: remark: [Passed] split{{.*}}split into {{.*}}2{{.*}} loops
  // CHECK-LABEL: gpu.func @right_only
  // CHECK-SAME:    %[[S:[^:]*]]: !kvbuffer.fragment<16x16xf32, acc>, %[[N:[^:]*]]: index, %[[A:[^:]*]]: index
  // CHECK:         %[[R0:.*]] = scf.for %{{.*}} = %c0 to %[[EDGE:.*]] step
  // CHECK:           kvbuffer.mask
  // CHECK:         scf.for %{{.*}} = %[[EDGE]] to %[[N]] step %{{.*}} iter_args(%{{.*}} = %[[R0]])
  // CHECK-NOT:       kvbuffer.mask
  // CHECK:           scf.yield
  // CHECK-NOT:     scf.for
  gpu.func @right_only(%s: !s, %n: index, %a: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %s) -> !s {
      %right = arith.cmpi slt, %i, %a : index
      %m = scf.if %right -> !s {
        %h = kvbuffer.mask %acc rows(%i, %n) keys(%i, %n) {mask = #kvbuffer.mask<>} : !s
        scf.yield %h : !s
      } else {
        scf.yield %acc : !s
      }
      scf.yield %m : !s
    }
    gpu.return
  }
}

// -----

!s = !kvbuffer.fragment<16x16xf32, acc>
#whole = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], split_masks = false>
gpu.module @m {
  // The first loop has no masks, the second one's are of the end.
  // REMARK: remark: [Passed] split{{.*}}split into {{.*}}2{{.*}} loops
  // CHECK-LABEL: gpu.func @left_only
  // CHECK-SAME:    %[[S:[^:]*]]: !kvbuffer.fragment<16x16xf32, acc>, %[[N:[^:]*]]: index, %[[B:[^:]*]]: index
  // CHECK:         %[[B0:.*]] = arith.maxsi %[[B]], %c0
  // CHECK:         %[[B1:.*]] = arith.minsi %[[B0]], %[[N]]
  // CHECK:         %[[R0:.*]] = scf.for %{{.*}} = %c0 to %[[B1]] step
  // CHECK-NOT:       kvbuffer.mask
  // CHECK:         scf.for %{{.*}} = %[[B1]] to %[[N]] step %{{.*}} iter_args(%{{.*}} = %[[R0]])
  // CHECK-NOT:       scf.if
  // CHECK:           kvbuffer.mask
  // CHECK-NOT:     scf.for
  gpu.func @left_only(%s: !s, %n: index, %b: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %s) -> !s {
      %left = arith.cmpi sge, %i, %b : index
      %m = scf.if %left -> !s {
        %h = kvbuffer.mask %acc rows(%i, %n) keys(%i, %n) {mask = #kvbuffer.mask<>} : !s
        scf.yield %h : !s
      } else {
        scf.yield %acc : !s
      }
      scf.yield %m : !s
    }
    gpu.return
  }

  // A schedule may keep the loop whole.
  // CHECK-LABEL: gpu.func @whole
  // CHECK:         scf.for
  // CHECK:           scf.if
  // CHECK-NOT:     scf.for
  gpu.func @whole(%s: !s, %n: index, %b: index) kernel attributes {kvbuffer.schedule = #whole} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %s) -> !s {
      %left = arith.cmpi sge, %i, %b : index
      %m = scf.if %left -> !s {
        scf.yield %s : !s
      } else {
        scf.yield %acc : !s
      }
      scf.yield %m : !s
    }
    gpu.return
  }
}

// -----

!s = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // The mask's edge and a function's: the first loop asks for the function's, too, which
  // the tiles at the right may be of as well; those at the left alone are not the mask's.
  // REMARK: remark: [Passed] split{{.*}}split into {{.*}}3{{.*}} loops
  // CHECK-LABEL: gpu.func @apart
  // CHECK:         scf.for %[[I:.*]] = %c0 to
  // CHECK:           %[[LEFT:.*]] = arith.cmpi sge, %[[I]], %arg3
  // CHECK-NEXT:      %[[BOTH:.*]] = arith.ori %{{.*}}, %[[LEFT]]
  // CHECK-NEXT:      %[[HIDDEN:.*]] = scf.if %[[LEFT]]
  // CHECK-NEXT:        kvbuffer.map
  // CHECK:           kvbuffer.mask %[[HIDDEN]]
  // CHECK-NEXT:      scf.yield
  // CHECK:         scf.for
  // CHECK-NOT:       kvbuffer.map
  // CHECK-NOT:       kvbuffer.mask
  // CHECK:         scf.for
  // CHECK-NOT:       scf.if
  // CHECK:           %[[MAPPED:.*]] = kvbuffer.map
  // CHECK-NOT:       kvbuffer.mask
  // CHECK:           scf.yield %[[MAPPED]]
  // CHECK-NEXT:    } {kvbuffer.edge_tiles}
  gpu.func @apart(%s: !s, %n: index, %a: index, %b: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %s) -> !s {
      %right = arith.cmpi slt, %i, %a : index
      %left = arith.cmpi sge, %i, %b : index
      %edge = arith.ori %right, %left : i1
      %m = scf.if %edge -> !s {
        %f = scf.if %left -> !s {
          %mapped = kvbuffer.map %acc : !s -> !s {
          ^bb0(%x: f32, %row: index, %col: index):
            kvbuffer.yield %x : f32
          }
          scf.yield %mapped : !s
        } else {
          scf.yield %acc : !s
        }
        %g = scf.if %right -> !s {
          %masked = kvbuffer.mask %f rows(%i, %n) keys(%i, %n) {mask = #kvbuffer.mask<causal = true>} : !s
          scf.yield %masked : !s
        } else {
          scf.yield %f : !s
        }
        scf.yield %g : !s
      } else {
        scf.yield %acc : !s
      }
      scf.yield %m : !s
    }
    gpu.return
  }
}

// -----

!s = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // Left alone: an edge that changes inside of the loop, a comparison with
  // something else than the iteration, a step that might jump over the edge.
  // CHECK-LABEL: gpu.func @unsplit
  // CHECK-COUNT-3: scf.if
  // CHECK-NOT:     scf.if
  // REMARK-NOT: remark
  gpu.func @unsplit(%s: !s, %n: index, %a: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    scf.for %i = %c0 to %n step %c1 {
      %moving = arith.addi %i, %a : index
      %edge = arith.cmpi slt, %i, %moving : index
      %m = scf.if %edge -> !s {
        scf.yield %s : !s
      } else {
        %z = kvbuffer.fragment_fill 0.0 : !s
        scf.yield %z : !s
      }
    }
    scf.for %i = %c0 to %n step %c1 {
      %edge = arith.cmpi slt, %a, %n : index
      %m = scf.if %edge -> !s {
        scf.yield %s : !s
      } else {
        %z = kvbuffer.fragment_fill 0.0 : !s
        scf.yield %z : !s
      }
    }
    scf.for %i = %c0 to %n step %c2 {
      %edge = arith.cmpi slt, %i, %a : index
      %m = scf.if %edge -> !s {
        scf.yield %s : !s
      } else {
        %z = kvbuffer.fragment_fill 0.0 : !s
        scf.yield %z : !s
      }
    }
    gpu.return
  }
}

// -----

!s = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // What no edge takes is split again by branches in there: tiles that are far at either
  // end have loops of their own. Two branches on one condition take one side.
  // REMARK: remark: [Passed] split{{.*}}split into {{.*}}2{{.*}} loops
  // REMARK: remark: [Passed] split{{.*}}split into {{.*}}3{{.*}} loops
  // CHECK-LABEL: gpu.func @again
  // CHECK:         scf.for
  // CHECK-NOT:       scf.if
  // CHECK:           kvbuffer.mask
  // CHECK-NOT:       fragment_fill 2.0
  // CHECK:         scf.for
  // CHECK-NOT:       scf.if
  // CHECK:           fragment_fill 2.0
  // CHECK:         scf.for
  // CHECK-NOT:       scf.if
  // CHECK-NOT:       fragment_fill 2.0
  // CHECK:           fragment_fill 4.0
  // CHECK:         scf.for
  // CHECK-NOT:       scf.if
  // CHECK:           fragment_fill 2.0
  // CHECK-NOT:     scf.for
  gpu.func @again(%s: !s, %n: index, %a: index, %b: index, %c: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %s) -> !s {
      %edge = arith.cmpi slt, %i, %a : index
      %right = arith.cmpi slt, %i, %b : index
      %left = arith.cmpi sge, %i, %c : index
      %far = arith.ori %right, %left : i1
      %read = scf.if %edge -> !s {
        scf.yield %acc : !s
      } else {
        %r0 = scf.if %far -> !s {
          scf.yield %acc : !s
        } else {
          %four = kvbuffer.fragment_fill 4.0 : !s
          scf.yield %four : !s
        }
        scf.yield %r0 : !s
      }
      %m = scf.if %edge -> !s {
        %h = kvbuffer.mask %read rows(%i, %n) keys(%i, %n) {mask = #kvbuffer.mask<>} : !s
        scf.yield %h : !s
      } else {
        %r1 = scf.if %far -> !s {
          %two = kvbuffer.fragment_fill 2.0 : !s
          scf.yield %two : !s
        } else {
          scf.yield %read : !s
        }
        scf.yield %r1 : !s
      }
      scf.yield %m : !s
    }
    gpu.return
  }
}
