// --grid 2
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Mail { uint flag; uint data; uint seen; };
void main() {
    if (gl_WorkGroupID.x == 0) {
        data = 42;
        flag = 1;
    } else {
        if (flag == 1)
            seen = data;
    }
}
