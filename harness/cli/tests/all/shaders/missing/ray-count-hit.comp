// expect: racy
// args: --rays hit
#version 460
#extension GL_EXT_ray_query : require
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) uniform accelerationStructureEXT scene;
layout(set = 0, binding = 1) buffer Count { uint hits; };

void main() {
    rayQueryEXT query;
    rayQueryInitializeEXT(query, scene, gl_RayFlagsNoneEXT, 0xff, vec3(gl_GlobalInvocationID), 0.0, vec3(0, 0, 1), 100.0);
    while (rayQueryProceedEXT(query)) {
        hits++;
    }
    if (rayQueryGetIntersectionTypeEXT(query, true) != gl_RayQueryCommittedIntersectionNoneEXT) {
        hits++;
    }
}
