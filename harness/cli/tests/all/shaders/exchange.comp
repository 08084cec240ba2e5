#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 2) in;
layout(set = 0, binding = 0) buffer Data { uint value[2]; } data;
shared uint row[2];
#include "part/meet.glsl"

void main() {
    uint id = gl_LocalInvocationIndex;
    row[id] = id;
    meet();
    data.value[id] = row[1 - id];
}
