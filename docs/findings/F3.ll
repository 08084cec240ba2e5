; F3: two waves of a workgroup hand a store over, and the second one releases at agent scope. llc-19 -mcpu=gfx90a -o - F3.ll
target triple = "amdgcn-amd-amdhsa"

; By a barrier: P0 stores x, the barrier orders, P1 releases f. Both roles stand in one wave's code, one behind the other.
define amdgpu_kernel void @barrier(ptr addrspace(1) %x, ptr addrspace(1) %f) #0 {
  store atomic i32 1, ptr addrspace(1) %x syncscope("agent") monotonic, align 4
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  store atomic i32 1, ptr addrspace(1) %f syncscope("agent") release, align 4
  ret void
}

; By a flag: P0 stores x, and releases g at workgroup scope.
define amdgpu_kernel void @flag(ptr addrspace(1) %x, ptr addrspace(1) %g) #0 {
  store atomic i32 1, ptr addrspace(1) %x syncscope("agent") monotonic, align 4
  store atomic i32 1, ptr addrspace(1) %g syncscope("workgroup") release, align 4
  ret void
}

declare void @llvm.amdgcn.s.barrier()

attributes #0 = { "amdgpu-flat-work-group-size"="128,128" }
