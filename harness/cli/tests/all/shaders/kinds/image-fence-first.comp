// --grid 1 --image 0.0=8x8 --image 0.1=8x8
#version 450
layout(local_size_x=8,local_size_y=8) in;
layout(set=0,binding=0,rgba8) uniform readonly image2D src;
layout(set=0,binding=1,r32f) uniform coherent image2D dst;
void main(){
  ivec2 p=ivec2(gl_GlobalInvocationID.xy);
  vec4 c=imageLoad(src,p);
  imageStore(dst,p,vec4(dot(c.rgb,vec3(0.2,0.7,0.1)))); //~ race with 12
  memoryBarrierImage();
  barrier(); //~ fix: put `memoryBarrierImage();` after this barrier
  vec4 n=imageLoad(dst,ivec2(p.x^1,p.y)); //~ race with 14
  barrier(); //~ fix: put `memoryBarrierImage();` before and after this barrier
  imageStore(dst,p,n+c);
}
//~ main: racy; mended: clean
