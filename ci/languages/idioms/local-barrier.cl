__attribute__((reqd_work_group_size(8, 1, 1)))
kernel void main_kernel(global uint *b, global uint *o) {
  local uint s[8];
  uint t = get_local_id(0);
  s[t] = t;
  barrier(CLK_LOCAL_MEM_FENCE);
  o[t] = s[7u - t];
}
