/* Faults of images, texel buffers and their descriptors: part of fault.c. */

typedef struct Extent {
    uint32_t width, height, depth;
} Extent;

typedef struct ImageInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    int32_t kind, format;
    Extent extent;
    uint32_t levels, layers, samples;
    int32_t tiling;
    uint32_t usage;
    int32_t sharing;
    uint32_t family_count;
    const uint32_t *next_queue_families;
    int32_t layout;
} ImageInfo;

typedef struct ImageViewInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t image;
    int32_t kind, format, components[4];
    uint32_t aspects, level, levels, layer, layers;
} ImageViewInfo;

typedef struct BufferViewInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t buffer;
    int32_t format;
    uint64_t offset, range;
} BufferViewInfo;

typedef struct ImageCopy {
    uint64_t offset;
    uint32_t row_texels, rows;
    uint32_t aspects, level, layer, layers;
    int32_t start[3];
    Extent extent;
} ImageCopy;

typedef struct BoundImage {
    uint64_t sampler, view;
    int32_t layout;
} BoundImage;

/* Bytes by which a texel buffer is shifted: a multiple of every driver's alignment. */
enum { VIEW_SHIFT_BYTES = 256 };

/* The formats of images, by the order of creation. */
enum { IMAGES = 256, FORMAT_RGBA32 = 107, FORMAT_R64 = 110 };
static struct { uint64_t image; int32_t format; } formats[IMAGES];
static unsigned image_count;

/* Returns the bytes of a texel. */
static uint64_t texel_bytes(uint64_t image) {
    for (unsigned i = 0; i < IMAGES; i++)
        if (formats[i].image == image) return formats[i].format >= FORMAT_R64 ? 8 : formats[i].format >= FORMAT_RGBA32 ? 16 : 4;
    return 4;
}

/* Texels that a copy omits. */
enum { TEXEL_HOLE = 16 };

/* Splits a copy of more than four holes into two parts, so that it omits texels in the middle of its rows. */
static int omit_texels(const ImageCopy *whole, uint64_t bytes, ImageCopy parts[2]) {
    uint32_t width = whole->extent.width, skipped = width / 2 + TEXEL_HOLE;
    if (width <= 4 * TEXEL_HOLE) return 0;
    parts[0] = parts[1] = *whole;
    parts[0].row_texels = parts[1].row_texels = whole->row_texels ? whole->row_texels : width;
    parts[0].extent.width = width / 2;
    parts[1].extent.width = width - skipped;
    parts[1].start[0] += (int32_t)skipped;
    parts[1].offset += skipped * bytes;
    return 1;
}

static Result layer_vkCreateImage(Handle handle, const ImageInfo *info, const void *allocator, uint64_t *created) {
    ImageInfo changed = *info;
    if (is_fault("other-layer")) changed.layers++;
    Result result = ((Result(*)(Handle, const ImageInfo *, const void *, uint64_t *))next_function(handle, "vkCreateImage"))(
        handle, &changed, allocator, created);
    if (result != SUCCESS) return result;
    formats[image_count % IMAGES].image = *created;
    formats[image_count++ % IMAGES].format = info->format;
    return SUCCESS;
}

static Result layer_vkCreateImageView(Handle handle, const ImageViewInfo *info, const void *allocator, uint64_t *created) {
    static unsigned long views;
    ImageViewInfo changed = *info;
    if (is_fault("other-layer") && is_nth(&views)) changed.layer++;
    return ((Result(*)(Handle, const ImageViewInfo *, const void *, uint64_t *))next_function(handle, "vkCreateImageView"))(
        handle, &changed, allocator, created);
}

static Result layer_vkCreateBufferView(Handle handle, const BufferViewInfo *info, const void *allocator, uint64_t *created) {
    static unsigned long views;
    BufferViewInfo changed = *info;
    if (is_fault("shifted-view") && is_nth(&views)) changed.offset += VIEW_SHIFT_BYTES;
    return ((Result(*)(Handle, const BufferViewInfo *, const void *, uint64_t *))next_function(handle, "vkCreateBufferView"))(
        handle, &changed, allocator, created);
}

static void layer_vkCmdCopyBufferToImage(
    Handle commands, uint64_t from, uint64_t to, int32_t layout, uint32_t count, const ImageCopy *regions) {
    static unsigned long recorded;
    if (is_fault("no-image-fill") && is_nth(&recorded)) return;
    ImageCopy changed = *regions;
    if (is_fault("row-pitch") && count == 1 && changed.extent.height > 1 && is_nth(&recorded)) {
        /* The last row would end outside of the buffer. */
        changed.extent.height--;
        changed.row_texels = changed.extent.width + 16;
    }
    ImageCopy parts[2];
    int has_hole = is_fault("image-fill-hole") && count == 1 && omit_texels(regions, texel_bytes(to), parts) && is_nth(&recorded);
    ((void (*)(Handle, uint64_t, uint64_t, int32_t, uint32_t, const ImageCopy *))next_function(commands, "vkCmdCopyBufferToImage"))(
        commands, from, to, layout, has_hole ? 2 : count, has_hole ? parts : count == 1 ? &changed : regions);
}

static void layer_vkCmdCopyImageToBuffer(
    Handle commands, uint64_t from, int32_t layout, uint64_t to, uint32_t count, const ImageCopy *regions) {
    static unsigned long recorded;
    if (is_fault("no-image-read") && is_nth(&recorded)) return;
    ImageCopy parts[2];
    int has_hole = is_fault("image-read-hole") && count == 1 && omit_texels(regions, texel_bytes(from), parts) && is_nth(&recorded);
    ((void (*)(Handle, uint64_t, int32_t, uint64_t, uint32_t, const ImageCopy *))next_function(commands, "vkCmdCopyImageToBuffer"))(
        commands, from, layout, to, has_hole ? 2 : count, has_hole ? parts : regions);
}

/* Returns true if two writes of descriptors of the same type bind different memory. */
static int bind_different_memory(const DescriptorWrite *left, const DescriptorWrite *right) {
    if (left->kind != right->kind || left->count != 1 || right->count != 1) return 0;
    if (left->buffers && right->buffers) return left->buffers->buffer != right->buffers->buffer;
    if (left->images && right->images) return left->images->view != right->images->view;
    return left->views && right->views && *left->views != *right->views;
}

/* Exchanges the first two buffers, or images and texel buffers, that differ, in one update in N that has such. */
static void exchange_descriptors(DescriptorWrite *writes, uint32_t count, int images) {
    static unsigned long changed;
    for (uint32_t left = 0; left < count; left++)
        for (uint32_t right = left + 1; right < count; right++) {
            int are_images = writes[left].buffers == NULL;
            if (are_images != images || !bind_different_memory(writes + left, writes + right)) continue;
            if (!is_nth(&changed)) return;
            DescriptorWrite first = writes[left];
            writes[left].buffers = writes[right].buffers;
            writes[left].images = writes[right].images;
            writes[left].views = writes[right].views;
            writes[right].buffers = first.buffers;
            writes[right].images = first.images;
            writes[right].views = first.views;
            return;
        }
}

/* The memory that was bound last to each binding. */
static struct { DescriptorWrite write; BufferRange buffer; BoundImage image; uint64_t view; } bound[256];
static unsigned bound_count;

/* Replaces one write in N by what its binding had before. */
static void rebind_earlier_memory(DescriptorWrite *writes, uint32_t count) {
    static unsigned long changed;
    for (uint32_t i = 0; i < count; i++) {
        unsigned at = 0;
        while (at < bound_count && !(bound[at].write.binding == writes[i].binding && bound[at].write.kind == writes[i].kind)) at++;
        if (at == sizeof bound / sizeof *bound || writes[i].count != 1) continue;
        DescriptorWrite original = writes[i];
        if (at < bound_count && bind_different_memory(&original, &bound[at].write) && is_nth(&changed)) {
            /* Later writes overwrite the memory. */
            static BufferRange buffers[16];
            static BoundImage images[16];
            static uint64_t views[16];
            unsigned place = changed % 16;
            buffers[place] = bound[at].buffer;
            images[place] = bound[at].image;
            views[place] = bound[at].view;
            if (original.buffers) writes[i].buffers = buffers + place;
            if (original.images) writes[i].images = images + place;
            if (original.views) writes[i].views = views + place;
        }
        bound[at].write = original;
        if (original.buffers) bound[at].buffer = *original.buffers, bound[at].write.buffers = &bound[at].buffer;
        if (original.images) bound[at].image = *original.images, bound[at].write.images = &bound[at].image;
        if (original.views) bound[at].view = *original.views, bound[at].write.views = &bound[at].view;
        if (at == bound_count) bound_count++;
    }
}
