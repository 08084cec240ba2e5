/* Accesses of commands, and the transfers. The bytes of a region that is not one range of its resource are only possible accesses. */

/* Pipeline stages and accesses (VkPipelineStageFlagBits2, VkAccessFlagBits2). */
enum { SYNC_INDIRECT = 1, SYNC_INDIRECT_STAGE = 2, SYNC_UNIFORM_READ = 8, SYNC_TRANSFER_READ = 0x800, SYNC_TRANSFER_WRITE = 0x1000 };
static const uint64_t SYNC_COPY = 1ull << 32, SYNC_RESOLVE = 1ull << 33, SYNC_BLIT = 1ull << 34, SYNC_CLEAR = 1ull << 35;
static const uint64_t SYNC_SAMPLED_READ = 1ull << 32, SYNC_STORAGE_READ = 1ull << 33, SYNC_STORAGE_WRITE = 1ull << 34;

/* `POSSIBLE`: a superset of what the command accesses. */
enum { WRITES = 1, POSSIBLE = 2 };

/* Appends a command that has accesses. `state` is empty, or more members that start with a comma. */
static void begin_command(Commands *commands, const char *what, const char *state) {
    ADD_COMMAND(commands, "{\"op\":\"command\",\"what\":\"%s\"%s,\"accesses\":[", what, state);
}

/* The state of a command that may access more than is recorded, with the reason. */
#define UNKNOWN_ACCESSES(why) ",\"unknown\":\"" why "\""

static void end_command(Commands *commands) { append(&commands->list, "]}"); }

/* What makes the access that is recorded, with the lock held: empty, or a member that starts with a comma. */
static const char *access_origin = "";

static void append_access(Text *text, uint64_t stage, uint64_t access, int kind) {
    append(text, ",\"stage\":%" PRIu64 ",\"access\":%" PRIu64 "%s%s%s}", stage, access, kind & WRITES ? ",\"is_write\":true" : "",
           kind & POSSIBLE ? ",\"is_possible\":true" : "", access_origin);
}

static void add_buffer_access(Text *text, uint64_t handle, uint64_t from, uint64_t size, uint64_t stage, uint64_t access, int kind) {
    const Buffer *buffer = find_object(BUFFERS, handle);
    if (!buffer || from >= buffer->size) return;
    if (size > buffer->size - from) size = buffer->size - from;
    append(text, "%s{\"buffer\":%" PRIu64 ",\"bytes\":[%" PRIu64 ",%" PRIu64 "]", text->data[text->length - 1] == '[' ? "" : ",", buffer->id, from,
           from + size);
    append_access(text, stage, access, kind);
}

enum { UNKNOWN_LAYOUT = -1, PRESENT_LAYOUT = 1000001002 };

static void append_image_access(Text *text, const Image *image, SubresourceRange range, int32_t layout, const uint64_t texels[2], uint64_t stage,
                                uint64_t access, int kind) {
    append(text, "%s{\"image\":%" PRIu64 ",\"range\":[%u,%u,%u,%u],\"aspects\":%u,\"layout\":%d,\"bytes\":[%" PRIu64 ",%" PRIu64 "]",
           text->data[text->length - 1] == '[' ? "" : ",", image->id, range.level, range.levels, range.layer, range.layers, range.aspect, layout, texels[0],
           texels[1]);
    append_access(text, stage, access, kind);
}

enum { MAX_ROWS = 32 };

/* A box of texels in a level; NULL for whole levels. */
typedef struct TexelBox {
    int64_t from[3], to[3];
} TexelBox;

static void add_image_access(Text *text, uint64_t handle, SubresourceRange range, int32_t layout, const TexelBox *box, uint64_t stage, uint64_t access,
                             int kind) {
    const Image *image = find_object(IMAGES, handle);
    if (!image) return;
    uint64_t texels[2] = { 0, ~(uint64_t)0 };
    /* A plane may have other texels than the image. */
    if (box && range.aspect >= FIRST_PLANE) {
        box = NULL;
        kind |= POSSIBLE;
    }
    if (box) {
        int64_t size[3], low[3], high[3];
        bool is_whole[3];
        for (int i = 0; i < 3; i++) {
            size[i] = image->info.size[i] >> range.level ? image->info.size[i] >> range.level : 1;
            low[i] = box->from[i] < box->to[i] ? box->from[i] : box->to[i];
            high[i] = box->from[i] < box->to[i] ? box->to[i] : box->from[i];
            is_whole[i] = low[i] <= 0 && high[i] >= size[i];
        }
        bool is_range = is_whole[0] && (is_whole[1] || size[2] == 1);
        if (is_whole[0] && is_whole[1] && is_whole[2]) is_range = true;
        else if (high[0] > low[0] && high[1] > low[1] && high[2] > low[2]) {
            texels[0] = (uint64_t)((low[2] * size[1] + low[1]) * size[0] + low[0]);
            texels[1] = (uint64_t)(((high[2] - 1) * size[1] + high[1] - 1) * size[0] + high[0]);
        }
        if (!is_range) {
            uint64_t width = (uint64_t)(high[0] - low[0]), rows = (uint64_t)((high[2] - low[2]) * (high[1] - low[1])), row = 0;
            for (int64_t slice = low[2]; slice < high[2] && row < MAX_ROWS; slice++)
                for (int64_t line = low[1]; line < high[1] && row < MAX_ROWS; line++, row++) {
                    uint64_t at = (uint64_t)((slice * size[1] + line) * size[0] + low[0]);
                    append_image_access(text, image, range, layout, (uint64_t[2]){ at, at + width }, stage, access, kind);
                }
            if (row == rows) return;
            /* The other rows are in a range that has more. */
            kind |= POSSIBLE;
        }
    }
    append_image_access(text, image, range, layout, texels, stage, access, kind);
}

/* Regions start `stride` bytes apart. */
static void add_buffer_command(Handle handle, const char *what, uint64_t stage, uint64_t from, uint64_t to, uint32_t count, const void *regions,
                               size_t stride) {
    LOCK;
    Commands *commands = find_commands(handle);
    if (commands) {
        begin_command(commands, what, "");
        for (uint32_t i = 0; i < count; i++) {
            const BufferRegion *region = (const BufferRegion *)((const char *)regions + i * stride);
            if (from) add_buffer_access(&commands->list, from, region->from, region->size, stage, SYNC_TRANSFER_READ, 0);
            add_buffer_access(&commands->list, to, region->to, region->size, stage, SYNC_TRANSFER_WRITE, WRITES);
        }
        end_command(commands);
    }
    UNLOCK;
}

static void layer_vkCmdCopyBuffer(Handle handle, uint64_t from, uint64_t to, uint32_t count, const BufferRegion *regions) {
    CALL_NEXT(handle, void, vkCmdCopyBuffer, (Handle, uint64_t, uint64_t, uint32_t, const BufferRegion *))(handle, from, to, count, regions);
    add_buffer_command(handle, "vkCmdCopyBuffer", SYNC_COPY, from, to, count, regions, sizeof *regions);
}

#define COPY_BUFFER2(name) \
    static void layer_##name(Handle handle, const BufferCopy2 *copy) { \
        CALL_NEXT(handle, void, name, (Handle, const BufferCopy2 *))(handle, copy); \
        add_buffer_command(handle, "vkCmdCopyBuffer2", SYNC_COPY, copy->from, copy->to, copy->count, copy->count ? &copy->regions->from : NULL, \
                           sizeof *copy->regions); \
    }
COPY_BUFFER2(vkCmdCopyBuffer2)
COPY_BUFFER2(vkCmdCopyBuffer2KHR)

/* Clear commands of the specification, so their stage is that of clears. */
static void layer_vkCmdFillBuffer(Handle handle, uint64_t to, uint64_t offset, uint64_t size, uint32_t data) {
    CALL_NEXT(handle, void, vkCmdFillBuffer, (Handle, uint64_t, uint64_t, uint64_t, uint32_t))(handle, to, offset, size, data);
    add_buffer_command(handle, "vkCmdFillBuffer", SYNC_CLEAR, 0, to, 1, &(BufferRegion){ 0, offset, size }, 0);
}

static void layer_vkCmdUpdateBuffer(Handle handle, uint64_t to, uint64_t offset, uint64_t size, const void *data) {
    CALL_NEXT(handle, void, vkCmdUpdateBuffer, (Handle, uint64_t, uint64_t, uint64_t, const void *))(handle, to, offset, size, data);
    add_buffer_command(handle, "vkCmdUpdateBuffer", SYNC_CLEAR, 0, to, 1, &(BufferRegion){ 0, offset, size }, 0);
}

static void layer_vkCmdCopyQueryPoolResults(Handle handle, uint64_t pool, uint32_t first, uint32_t count, uint64_t to, uint64_t offset,
                                            uint64_t stride, uint32_t flags) {
    CALL_NEXT(handle, void, vkCmdCopyQueryPoolResults, (Handle, uint64_t, uint32_t, uint32_t, uint64_t, uint64_t, uint64_t, uint32_t))(
        handle, pool, first, count, to, offset, stride, flags);
    add_buffer_command(handle, "vkCmdCopyQueryPoolResults", SYNC_COPY, 0, to, 1, &(BufferRegion){ 0, offset, (count - 1) * stride + (flags & 1 ? 8 : 4) * (flags & 4 ? 2 : 1) }, 0);
}

/* Bytes of a buffer that a copy between a buffer and an image accesses. Returns false if they are a part of the range. */
static bool image_copy_bytes(const Image *image, const ImageCopy *region, uint64_t *size) {
    enum { D16 = 124, D16_S8 = 128 };
    int format = image && region->aspect == COLOUR_ASPECT ? find_format(image->info.format) : -1;
    uint64_t texel_bytes = format < 0 ? 0 : (uint64_t)(FORMATS[format].bits / 8 * FORMATS[format].components);
    if (image && region->aspect == DEPTH_ASPECT) texel_bytes = image->info.format == D16 || image->info.format == D16_S8 ? 2 : 4;
    if (image && region->aspect == STENCIL_ASPECT) texel_bytes = 1;
    *size = WHOLE_SIZE;
    if (!texel_bytes) return false;
    uint64_t row = region->row ? region->row : region->size[0], height = region->height ? region->height : region->size[1];
    uint64_t slices = (uint64_t)region->layers * region->size[2];
    uint64_t texels = ((slices - 1) * height + region->size[1] - 1) * row + region->size[0];
    *size = texels * texel_bytes;
    return (row == region->size[0] || (region->size[1] == 1 && slices == 1)) && (height == region->size[1] || slices == 1);
}

/* Regions start `stride` bytes apart. Layers that are `~0` are the rest. */
static void add_image_copies(Handle handle, const char *what, bool is_to_image, uint64_t buffer, uint64_t image, int32_t layout, uint32_t count,
                             const char *regions, size_t stride) {
    LOCK;
    Commands *commands = find_commands(handle);
    if (commands) begin_command(commands, what, "");
    for (uint32_t i = 0; commands && i < count; i++) {
        ImageCopy region;
        memcpy(&region, regions + i * stride, sizeof region);
        uint64_t size;
        int kind = image_copy_bytes(find_object(IMAGES, image), &region, &size) ? 0 : POSSIBLE;
        TexelBox box = { { 0 }, { 0 } };
        for (int j = 0; j < 3; j++) {
            box.from[j] = region.begin[j];
            box.to[j] = (int64_t)region.begin[j] + region.size[j];
        }
        SubresourceRange range = { region.aspect, region.level, 1, region.layer, region.layers };
        add_buffer_access(&commands->list, buffer, region.offset, size, SYNC_COPY, is_to_image ? SYNC_TRANSFER_READ : SYNC_TRANSFER_WRITE,
                          kind | (is_to_image ? 0 : WRITES));
        add_image_access(&commands->list, image, range, layout, &box, SYNC_COPY, is_to_image ? SYNC_TRANSFER_WRITE : SYNC_TRANSFER_READ,
                         is_to_image ? WRITES : 0);
    }
    if (commands) end_command(commands);
    UNLOCK;
}

static void layer_vkCmdCopyBufferToImage(Handle handle, uint64_t buffer, uint64_t image, int32_t layout, uint32_t count, const ImageCopy *regions) {
    CALL_NEXT(handle, void, vkCmdCopyBufferToImage, (Handle, uint64_t, uint64_t, int32_t, uint32_t, const ImageCopy *))(
        handle, buffer, image, layout, count, regions);
    add_image_copies(handle, "vkCmdCopyBufferToImage", true, buffer, image, layout, count, (const char *)regions, sizeof *regions);
}

static void layer_vkCmdCopyImageToBuffer(Handle handle, uint64_t image, int32_t layout, uint64_t buffer, uint32_t count, const ImageCopy *regions) {
    CALL_NEXT(handle, void, vkCmdCopyImageToBuffer, (Handle, uint64_t, int32_t, uint64_t, uint32_t, const ImageCopy *))(
        handle, image, layout, buffer, count, regions);
    add_image_copies(handle, "vkCmdCopyImageToBuffer", false, buffer, image, layout, count, (const char *)regions, sizeof *regions);
}

#define IMAGE_COPY2(to_image, to_buffer) \
    static void layer_##to_image(Handle handle, const BufferToImage2 *copy) { \
        CALL_NEXT(handle, void, to_image, (Handle, const BufferToImage2 *))(handle, copy); \
        add_image_copies(handle, #to_image, true, copy->buffer, copy->image, copy->layout, copy->count, (const char *)copy->regions + sizeof(Header), \
                         sizeof(Header) + sizeof(ImageCopy)); \
    } \
    static void layer_##to_buffer(Handle handle, const ImageToBuffer2 *copy) { \
        CALL_NEXT(handle, void, to_buffer, (Handle, const ImageToBuffer2 *))(handle, copy); \
        add_image_copies(handle, #to_buffer, false, copy->buffer, copy->image, copy->layout, copy->count, (const char *)copy->regions + sizeof(Header), \
                         sizeof(Header) + sizeof(ImageCopy)); \
    }
IMAGE_COPY2(vkCmdCopyBufferToImage2, vkCmdCopyImageToBuffer2)
IMAGE_COPY2(vkCmdCopyBufferToImage2KHR, vkCmdCopyImageToBuffer2KHR)

/* Copies, resolves and blits between images. */
/* The image of each side, with its layout. */
typedef struct TransferSide {
    uint64_t image;
    int32_t layout;
} TransferSide;

static void add_image_transfers(Handle handle, const char *what, uint64_t stage, bool is_blit, TransferSide from, TransferSide to, uint32_t count,
                                const char *regions, size_t stride) {
    LOCK;
    Commands *commands = find_commands(handle);
    if (commands) begin_command(commands, what, "");
    for (uint32_t i = 0; commands && i < count; i++) {
        TexelBox boxes[2];
        SubresourceRange ranges[2];
        ImageRegion region = { 0 };
        ImageBlit blit = { 0 };
        if (is_blit) memcpy(&blit, regions + i * stride, sizeof blit);
        else memcpy(&region, regions + i * stride, sizeof region);
        for (int side = 0; side < 2; side++) {
            const SubresourceLayers *layers = is_blit ? &blit.sides[side].layers : &region.sides[side].layers;
            ranges[side] = (SubresourceRange){ layers->aspect, layers->level, 1, layers->layer, layers->count };
            for (int j = 0; j < 3; j++) {
                boxes[side].from[j] = is_blit ? blit.sides[side].corners[0][j] : region.sides[side].begin[j];
                boxes[side].to[j] = is_blit ? blit.sides[side].corners[1][j] : (int64_t)region.sides[side].begin[j] + region.size[j];
            }
        }
        add_image_access(&commands->list, from.image, ranges[0], from.layout, &boxes[0], stage, SYNC_TRANSFER_READ, 0);
        add_image_access(&commands->list, to.image, ranges[1], to.layout, &boxes[1], stage, SYNC_TRANSFER_WRITE, WRITES);
    }
    if (commands) end_command(commands);
    UNLOCK;
}

#define IMAGE_TRANSFER(name, stage, region_type) \
    static void layer_##name(Handle handle, uint64_t from, int32_t from_layout, uint64_t to, int32_t to_layout, uint32_t count, const region_type *regions) { \
        CALL_NEXT(handle, void, name, (Handle, uint64_t, int32_t, uint64_t, int32_t, uint32_t, const region_type *))( \
            handle, from, from_layout, to, to_layout, count, regions); \
        add_image_transfers(handle, #name, stage, false, (TransferSide){ from, from_layout }, (TransferSide){ to, to_layout }, count, \
                            (const char *)regions, sizeof *regions); \
    }
#define IMAGE_TRANSFER2(name, stage, is_blit, region_type) \
    static void layer_##name(Handle handle, const ImageTransfer2 *all) { \
        CALL_NEXT(handle, void, name, (Handle, const ImageTransfer2 *))(handle, all); \
        add_image_transfers(handle, #name, stage, is_blit, (TransferSide){ all->from, all->from_layout }, (TransferSide){ all->to, all->to_layout }, \
                            all->count, (const char *)all->regions + sizeof(Header), (sizeof(Header) + sizeof(region_type) + 7) / 8 * 8); \
    }
IMAGE_TRANSFER(vkCmdCopyImage, SYNC_COPY, ImageRegion)
IMAGE_TRANSFER(vkCmdResolveImage, SYNC_RESOLVE, ImageRegion)
IMAGE_TRANSFER2(vkCmdCopyImage2, SYNC_COPY, false, ImageRegion)
IMAGE_TRANSFER2(vkCmdCopyImage2KHR, SYNC_COPY, false, ImageRegion)
IMAGE_TRANSFER2(vkCmdResolveImage2, SYNC_RESOLVE, false, ImageRegion)
IMAGE_TRANSFER2(vkCmdResolveImage2KHR, SYNC_RESOLVE, false, ImageRegion)
IMAGE_TRANSFER2(vkCmdBlitImage2, SYNC_BLIT, true, ImageBlit)
IMAGE_TRANSFER2(vkCmdBlitImage2KHR, SYNC_BLIT, true, ImageBlit)

static void layer_vkCmdBlitImage(Handle handle, uint64_t from, int32_t from_layout, uint64_t to, int32_t to_layout, uint32_t count,
                                 const ImageBlit *regions, int32_t filter) {
    CALL_NEXT(handle, void, vkCmdBlitImage, (Handle, uint64_t, int32_t, uint64_t, int32_t, uint32_t, const ImageBlit *, int32_t))(
        handle, from, from_layout, to, to_layout, count, regions, filter);
    add_image_transfers(handle, "vkCmdBlitImage", SYNC_BLIT, true, (TransferSide){ from, from_layout }, (TransferSide){ to, to_layout }, count, (const char *)regions, sizeof *regions);
}

#define CLEAR_IMAGE(name) \
    static void layer_##name(Handle handle, uint64_t image, int32_t layout, const void *value, uint32_t count, const SubresourceRange *ranges) { \
        CALL_NEXT(handle, void, name, (Handle, uint64_t, int32_t, const void *, uint32_t, const SubresourceRange *))( \
            handle, image, layout, value, count, ranges); \
        LOCK; \
        Commands *commands = find_commands(handle); \
        if (commands) begin_command(commands, #name, ""); \
        for (uint32_t i = 0; commands && i < count; i++) \
            add_image_access(&commands->list, image, ranges[i], layout, NULL, SYNC_CLEAR | SYNC_COPY, SYNC_TRANSFER_WRITE, WRITES); \
        if (commands) end_command(commands); \
        UNLOCK; \
    }
CLEAR_IMAGE(vkCmdClearColorImage)
CLEAR_IMAGE(vkCmdClearDepthStencilImage)

#define TRANSFER_FUNCTIONS \
    LAYER_FUNCTION(vkCmdCopyBuffer) LAYER_FUNCTION(vkCmdCopyBuffer2) LAYER_FUNCTION(vkCmdCopyBuffer2KHR) LAYER_FUNCTION(vkCmdFillBuffer) \
    LAYER_FUNCTION(vkCmdUpdateBuffer) LAYER_FUNCTION(vkCmdCopyQueryPoolResults) LAYER_FUNCTION(vkCmdCopyBufferToImage) \
    LAYER_FUNCTION(vkCmdCopyBufferToImage2) LAYER_FUNCTION(vkCmdCopyBufferToImage2KHR) LAYER_FUNCTION(vkCmdCopyImageToBuffer) \
    LAYER_FUNCTION(vkCmdCopyImageToBuffer2) LAYER_FUNCTION(vkCmdCopyImageToBuffer2KHR) LAYER_FUNCTION(vkCmdCopyImage) \
    LAYER_FUNCTION(vkCmdCopyImage2) LAYER_FUNCTION(vkCmdCopyImage2KHR) LAYER_FUNCTION(vkCmdResolveImage) LAYER_FUNCTION(vkCmdResolveImage2) \
    LAYER_FUNCTION(vkCmdResolveImage2KHR) LAYER_FUNCTION(vkCmdBlitImage) LAYER_FUNCTION(vkCmdBlitImage2) LAYER_FUNCTION(vkCmdBlitImage2KHR) \
    LAYER_FUNCTION(vkCmdClearColorImage) LAYER_FUNCTION(vkCmdClearDepthStencilImage)
