/* Contents of images as case files hold them: four 32-bit components a texel. */

/* Formats whose texels are written as four 32-bit components. */
enum { UNORM, SNORM, SRGB, INTEGER, SIGNED, FLOAT };
static const struct { int32_t format; int bits, components, kind; bool swapped; } FORMATS[] = {
    { 9, 8, 1, UNORM, false },    { 10, 8, 1, SNORM, false },   { 13, 8, 1, INTEGER, false }, { 14, 8, 1, SIGNED, false },
    { 16, 8, 2, UNORM, false },   { 17, 8, 2, SNORM, false },   { 20, 8, 2, INTEGER, false }, { 21, 8, 2, SIGNED, false },
    { 37, 8, 4, UNORM, false },   { 38, 8, 4, SNORM, false },   { 41, 8, 4, INTEGER, false }, { 42, 8, 4, SIGNED, false },
    { 43, 8, 4, SRGB, false },    { 44, 8, 4, UNORM, true },    { 50, 8, 4, SRGB, true },     { 70, 16, 1, UNORM, false },
    { 71, 16, 1, SNORM, false },  { 74, 16, 1, INTEGER, false },{ 75, 16, 1, SIGNED, false }, { 76, 16, 1, FLOAT, false },
    { 77, 16, 2, UNORM, false },  { 78, 16, 2, SNORM, false },  { 81, 16, 2, INTEGER, false },{ 82, 16, 2, SIGNED, false },
    { 83, 16, 2, FLOAT, false },  { 91, 16, 4, UNORM, false },  { 92, 16, 4, SNORM, false },  { 95, 16, 4, INTEGER, false },
    { 96, 16, 4, SIGNED, false }, { 97, 16, 4, FLOAT, false },  { 98, 32, 1, INTEGER, false },{ 99, 32, 1, SIGNED, false },
    { 100, 32, 1, FLOAT, false }, { 101, 32, 2, INTEGER, false },{ 102, 32, 2, SIGNED, false },{ 103, 32, 2, FLOAT, false },
    { 107, 32, 4, INTEGER, false },{ 108, 32, 4, SIGNED, false },{ 109, 32, 4, FLOAT, false },
};

static int find_format(int32_t format) {
    for (unsigned i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
        if (FORMATS[i].format == format) return (int)i;
    return -1;
}

static float half_to_float(uint32_t bits) {
    int exponent = bits >> 10 & 31;
    float fraction = (float)(bits & 1023);
    float size = exponent == 0 ? ldexpf(fraction, -24) : exponent == 31 ? (fraction > 0 ? NAN : INFINITY) : ldexpf(1024 + fraction, exponent - 25);
    return bits >> 15 ? -size : size;
}

static uint32_t convert_component(uint32_t raw, int bits, int kind) {
    uint32_t top = bits == 32 ? ~0u : (1u << bits) - 1;
    int32_t number = bits == 32 ? (int32_t)raw : (int32_t)(raw << (32 - bits)) >> (32 - bits);
    float real = 0;
    switch (kind) {
    case INTEGER: return raw;
    case SIGNED: return (uint32_t)number;
    case UNORM: real = (float)raw / (float)top; break;
    case SNORM: real = fmaxf((float)number / (float)(top >> 1), -1); break;
    case SRGB:
        real = (float)raw / (float)top;
        real = real <= 0.04045f ? real / 12.92f : powf((real + 0.055f) / 1.055f, 2.4f);
        break;
    default:
        if (bits == 32) return raw;
        real = half_to_float(raw);
    }
    uint32_t result;
    memcpy(&result, &real, sizeof result);
    return result;
}

/* In the layout of `file` of an image in case.toml. */
static void write_texels(FILE *file, int32_t format, const unsigned char *raw, uint64_t size) {
    int at = find_format(format);
    int bytes = FORMATS[at].bits / 8, components = FORMATS[at].components, kind = FORMATS[at].kind;
    uint64_t texels = size / (uint64_t)(bytes * components);
    for (uint64_t texel = 0; texel < texels; texel++) {
        float one = 1;
        uint32_t all[4] = { 0, 0, 0, 1 };
        if (kind != INTEGER && kind != SIGNED) memcpy(&all[3], &one, sizeof one);
        for (int i = 0; i < components; i++, raw += bytes) {
            uint32_t word = 0;
            memcpy(&word, raw, (size_t)bytes);
            int place = FORMATS[at].swapped && i < 3 ? 2 - i : i;
            all[place] = convert_component(word, FORMATS[at].bits, kind == SRGB && i == 3 ? UNORM : kind);
        }
        fwrite(all, sizeof all, 1, file);
    }
}


/* VkFormat and VkImageAspectFlagBits. */
enum { FIRST_DEPTH = 124, STENCIL_ALONE = 127, LAST_DEPTH = 130, COLOUR_ASPECT = 1, DEPTH_ASPECT = 2, STENCIL_ASPECT = 4, FIRST_PLANE = 0x10 };

/* The aspects of a format with depth or stencil, else 0. Attachments have all of them, whatever their views name. */
static uint32_t depth_aspects(int32_t format) {
    if (format < FIRST_DEPTH || format > LAST_DEPTH) return 0;
    return format < STENCIL_ALONE ? DEPTH_ASPECT : format == STENCIL_ALONE ? STENCIL_ASPECT : DEPTH_ASPECT | STENCIL_ASPECT;
}

/* The aspects of a format that are accessed separately: its depth and stencil, or its planes. */
static uint32_t format_aspects(int32_t format) {
    enum { TWO_PLANES = 3 * FIRST_PLANE, THREE_PLANES = 7 * FIRST_PLANE, FIRST_PLANAR = 1000156000, FIRST_444 = 1000330000 };
    static const uint8_t THREE[] = { 2, 4, 6, 11, 13, 15, 21, 23, 25, 29, 31, 33 }, TWO[] = { 3, 5, 12, 14, 22, 24, 30, 32 };
    if (depth_aspects(format)) return depth_aspects(format);
    for (size_t i = 0; i < sizeof THREE; i++)
        if (format == FIRST_PLANAR + THREE[i]) return THREE_PLANES;
    for (size_t i = 0; i < sizeof TWO; i++)
        if (format == FIRST_PLANAR + TWO[i]) return TWO_PLANES;
    return format >= FIRST_444 && format < FIRST_444 + 4 ? TWO_PLANES : COLOUR_ASPECT;
}
