__attribute__((reqd_work_group_size(8, 1, 1)))
kernel void main_kernel(global uint *b, global uint *o) {
  uint t = get_local_id(0);
  b[t] = t;
  barrier(CLK_LOCAL_MEM_FENCE);
  o[t] = b[7u - t];
}
