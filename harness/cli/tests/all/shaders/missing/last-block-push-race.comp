// The last workgroup reads sums that nothing publishes, for every value of the push constant.
// expect: racy
#version 450
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) buffer Sums { uint sums[64]; };
layout(set = 0, binding = 1) coherent buffer Counter { uint counter; };
layout(set = 0, binding = 2) buffer Result { uint result; };
layout(push_constant) uniform P { uint target_counter; };
shared uint last;
void main() {
    if (gl_LocalInvocationIndex == 0u) {
        sums[gl_WorkGroupID.x] = gl_WorkGroupID.x;
        last = atomicAdd(counter, 1u);
    }
    barrier();
    if (last == target_counter - 1u && gl_LocalInvocationIndex == 0u) {
        uint sum = 0u;
        for (uint i = 0u; i < gl_NumWorkGroups.x; i++) {
            sum += sums[i];
        }
        result = sum;
    }
}
