// --grid 1
// Every second ray hits.
#version 460
#extension GL_EXT_ray_query : require
layout(local_size_x = 32) in;
layout(binding = 1) uniform accelerationStructureEXT scene;
layout(std430, binding = 0) buffer Out { uint data[]; };

void main() {
    rayQueryEXT query;
    rayQueryInitializeEXT(query, scene, 0, 0xff, vec3(0), 0.0, vec3(0, 0, 1), 9.0);
    while (rayQueryProceedEXT(query)) {}
    data[gl_GlobalInvocationID.x] = uint(rayQueryGetIntersectionTypeEXT(query, true));
}
//~ main: clean
