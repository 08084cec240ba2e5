
#define DOT(NAME, ID, R, A, B, P, Q, V, W) \
    spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6017], id = ID) R NAME(A a, B b); \
    spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = ID) R NAME(P a, Q b, spirv_literal int f); \
    spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6016], id = ID) R NAME(V a, W b);
#define SUM(NAME, ID, R, A, B, P, Q) \
    spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6017], id = ID) R NAME(A a, B b, R c); \
    spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = ID) R NAME(P a, Q b, R c, spirv_literal int f);
DOT(SDot, 4450, int, i8vec4, i8vec4, int, int, ivec4, ivec4)
DOT(UDot, 4451, uint, u8vec4, u8vec4, uint, uint, uvec4, uvec4)
DOT(SUDot, 4452, int, i8vec4, u8vec4, int, uint, ivec4, uvec4)
SUM(SDotAccSat, 4453, int, i8vec4, i8vec4, int, int)
SUM(UDotAccSat, 4454, uint, u8vec4, u8vec4, uint, uint)
SUM(SUDotAccSat, 4455, int, i8vec4, u8vec4, int, uint)
