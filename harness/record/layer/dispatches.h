/* Dispatches: their kinds, and the copies of their inputs. */

enum { MAX_NAME = 48, MAX_COPIED = 64 };
typedef struct Inputs {
    Commands *commands;
    Capture *capture; /* NULL if contents are not recorded. */
    Text resources, missing, missing_contents;
    char name[MAX_NAME]; /* The descriptor, as case.toml names it. */
    const uint32_t *place; /* Its set and binding; NULL for what no descriptor names. */
    struct { uint64_t buffer, offset, size; char name[MAX_NAME]; } copied[MAX_COPIED]; /* Storage buffers that another descriptor may alias. */
    unsigned copied_count;
} Inputs;

static void add_late_use(Commands *commands, LateUse use) {
    commands->late_uses = realloc(commands->late_uses, (commands->late_use_count + 1) * sizeof use);
    if (!commands->late_uses) abort();
    commands->late_uses[commands->late_use_count++] = use;
}

/* Adds a use for the late sets of a bind point. Returns its id, or 0 if there are none. */
static const DescriptorSet *bound_set(const BindPoint *point, uint32_t number);
static uint64_t add_late_uses(Commands *commands, const BindPoint *point, uint32_t set_count) {
    uint64_t use = 0;
    for (uint32_t number = 0; number < set_count; number++) {
        const DescriptorSet *set = bound_set(point, number);
        if (!set || !set->layout || !(set->layout->is_updated_late || set->address)) continue;
        if (!use) use = ++last_id;
        add_late_use(commands, (LateUse){ set, use, set->updates });
    }
    return use;
}

/* Names an input that the case lacks. Of `is_contents`, the case has the size. */
static void add_missing(Inputs *inputs, bool is_contents, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add_missing(Inputs *inputs, bool is_contents, const char *format, ...) {
    char words[256];
    va_list all;
    va_start(all, format);
    vsnprintf(words, sizeof words, format, all);
    va_end(all);
    Text *missing = is_contents ? &inputs->missing_contents : &inputs->missing;
    append(missing, "%s{\"what\":\"%s\"", missing->length ? "," : "", words);
    if (inputs->place) append(missing, ",\"place\":[%u,%u]", inputs->place[0], inputs->place[1]);
    append(missing, "}");
    if (inputs->capture) append(&inputs->capture->notes, "# missing: %s\n", words);
}

/* What a descriptor names. */
typedef struct DescriptorUse {
    uint64_t reads; /* The access of reads. */
    bool may_write;
    uint64_t buffer, offset, size;
    const ViewInfo *view;
} DescriptorUse;

/* A set may have descriptors of other stages. */
static bool is_for_compute(const DescriptorSet *set, const Descriptor *descriptor) {
    const LayoutBinding *binding = find_binding(set->layout, descriptor->binding);
    return descriptor->kind >= 0 && (!binding || binding->stages & COMPUTE_STAGE);
}

static bool is_dynamic(int32_t kind) { return kind == UNIFORM_BUFFER_DYNAMIC || kind == STORAGE_BUFFER_DYNAMIC; }

static DescriptorUse descriptor_use(const Descriptor *descriptor, uint32_t dynamic) {
    DescriptorUse use = { SYNC_STORAGE_READ, false, 0, 0, 0, NULL };
    switch (descriptor->kind) {
    case UNIFORM_BUFFER:
    case UNIFORM_BUFFER_DYNAMIC: use.reads = SYNC_UNIFORM_READ; break;
    case IMAGE_AND_SAMPLER:
    case SAMPLED_IMAGE:
    case UNIFORM_TEXELS: use.reads = SYNC_SAMPLED_READ; break;
    case INPUT_ATTACHMENT: use.reads = INPUT_READ; break;
    default: use.may_write = true;
    }
    if (descriptor->kind >= UNIFORM_BUFFER && descriptor->kind <= STORAGE_BUFFER_DYNAMIC) {
        use.buffer = descriptor->buffer.buffer;
        use.offset = descriptor->buffer.offset + dynamic;
        use.size = descriptor->buffer.range;
    } else if (descriptor->kind == UNIFORM_TEXELS || descriptor->kind == STORAGE_TEXELS) {
        const BufferViewInfo *view = find_object(BUFFER_VIEWS, descriptor->texels);
        if (view) use.buffer = view->buffer, use.offset = view->offset, use.size = view->range;
    } else if ((descriptor->kind >= IMAGE_AND_SAMPLER && descriptor->kind <= STORAGE_IMAGE) || descriptor->kind == INPUT_ATTACHMENT) {
        use.view = find_object(VIEWS, descriptor->image.view);
    }
    const Buffer *buffer = find_object(BUFFERS, use.buffer);
    if (buffer && use.size == WHOLE_SIZE) use.size = buffer->size > use.offset ? buffer->size - use.offset : 0;
    return use;
}

static void copy_buffer(Handle commands, const Readback *to, uint64_t from, uint64_t offset) {
    BufferRegion region = { offset, 0, to->size };
    if (to->size == 0) return;
    CALL_NEXT(commands, void, vkCmdCopyBuffer, (Handle, uint64_t, uint64_t, uint32_t, const void *))(commands, from, to->buffer, 1, &region);
}

static Readback *add_readback(Inputs *inputs, uint64_t size) {
    Readback *readback = inputs->capture ? create_readback(inputs->commands->device, size) : NULL;
    if (!readback) return NULL;
    readback->next = inputs->capture->readbacks;
    return inputs->capture->readbacks = readback;
}

/* A table of case.toml without contents. */
static Readback *add_table(Inputs *inputs) {
    Readback *table = allocate(sizeof *table);
    table->next = inputs->capture->readbacks;
    return inputs->capture->readbacks = table;
}

/* An element of an array of descriptors has its number in the name. */
static bool is_element(const DescriptorSet *set, const Descriptor *descriptor) {
    const LayoutBinding *binding = find_binding(set->layout, descriptor->binding);
    return descriptor->element > 0 || (binding && binding->count > 1);
}

static void name_descriptor(Inputs *inputs, const DescriptorSet *set, uint32_t number, const Descriptor *descriptor) {
    if (is_element(set, descriptor)) snprintf(inputs->name, MAX_NAME, "%u.%u[%u]", number, descriptor->binding, descriptor->element);
    else snprintf(inputs->name, MAX_NAME, "%u.%u", number, descriptor->binding);
}

/* Returns the name of a descriptor of the same range, which has its contents, or NULL. Elements of arrays have no aliases in case.toml. */
static const char *find_alias(Inputs *inputs, const Descriptor *descriptor, const DescriptorUse *use) {
    if (descriptor->kind != STORAGE_BUFFER && descriptor->kind != STORAGE_BUFFER_DYNAMIC) return NULL;
    if (strchr(inputs->name, '[')) return NULL;
    for (unsigned i = 0; i < inputs->copied_count; i++)
        if (inputs->copied[i].buffer == use->buffer && inputs->copied[i].offset == use->offset && inputs->copied[i].size == use->size)
            return inputs->copied[i].name;
    if (inputs->copied_count == MAX_COPIED) return NULL;
    unsigned at = inputs->copied_count++;
    inputs->copied[at].buffer = use->buffer, inputs->copied[at].offset = use->offset, inputs->copied[at].size = use->size;
    memcpy(inputs->copied[at].name, inputs->name, MAX_NAME);
    return NULL;
}

static void begin_resource(Inputs *inputs, uint32_t set, const Descriptor *descriptor, const DescriptorUse *use) {
    append(&inputs->resources, "%s{\"set\":%u,\"binding\":%u,\"element\":%u,\"reads\":%" PRIu64 ",\"may_write\":%s", inputs->resources.length ? "," : "",
           set, descriptor->binding, descriptor->element, use->reads, use->may_write ? "true" : "false");
}

/* The texels of a buffer view, as those of an image. */
static void add_texels(Inputs *inputs, const DescriptorUse *use, int32_t format, uint64_t texel_bytes) {
    if (!inputs->capture) return;
    Readback *readback = texel_bytes ? add_readback(inputs, use->size / texel_bytes * texel_bytes) : NULL;
    if (!readback) {
        add_missing(inputs, false, "texel buffer %s: format %d, %" PRIu64 " bytes", inputs->name, format, use->size);
        return;
    }
    readback->format = format;
    Text lines = { 0 };
    append(&lines, "size = [%" PRIu64 ", 1, 1]\n", use->size / texel_bytes);
    readback->lines = lines.data;
    snprintf(readback->table, sizeof readback->table, "[image.\"%s\"]", inputs->name);
    copy_buffer(inputs->commands->handle, readback, use->buffer, use->offset);
}

static void add_buffer(Inputs *inputs, uint32_t set, const Descriptor *descriptor, uint32_t dynamic) {
    DescriptorUse use = descriptor_use(descriptor, dynamic);
    const Buffer *buffer = find_object(BUFFERS, use.buffer);
    if (!buffer || use.offset > buffer->size) {
        add_missing(inputs, false, "buffer %s", inputs->name);
        return;
    }
    const BufferViewInfo *view = descriptor->kind == UNIFORM_TEXELS || descriptor->kind == STORAGE_TEXELS ? find_object(BUFFER_VIEWS, descriptor->texels) : NULL;
    uint64_t texel_bytes = 0;
    begin_resource(inputs, set, descriptor, &use);
    append(&inputs->resources, ",\"buffer\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"size\":%" PRIu64, buffer->id, use.offset, use.size);
    if (view) {
        int format = find_format(view->format);
        texel_bytes = format < 0 ? 0 : (uint64_t)(FORMATS[format].bits / 8 * FORMATS[format].components);
        append(&inputs->resources, ",\"texel_bytes\":%" PRIu64, texel_bytes);
    }
    append(&inputs->resources, "}");
    if (view) add_texels(inputs, &use, view->format, texel_bytes);
    if (view || !inputs->capture) return;
    const char *alias = find_alias(inputs, descriptor, &use);
    Readback *readback = alias ? NULL : add_readback(inputs, use.size);
    if (readback) copy_buffer(inputs->commands->handle, readback, use.buffer, use.offset);
    else {
        readback = add_table(inputs);
        Text lines = { 0 };
        if (alias) append(&lines, "alias = \"%s\"\n", alias);
        else append(&lines, "bytes = %" PRIu64 "\n", use.size);
        readback->lines = lines.data;
        if (!alias) add_missing(inputs, true, "contents of buffer %s: %" PRIu64 " bytes", inputs->name, use.size);
    }
    snprintf(readback->table, sizeof readback->table, "[buffer.\"%s\"]", inputs->name);
}

/* The bytes of an inline uniform block, as numbers. */
static void add_block(Inputs *inputs, const Descriptor *descriptor) {
    if (!inputs->capture) return;
    Readback *table = add_table(inputs);
    snprintf(table->table, sizeof table->table, "[buffer.\"%s\"]", inputs->name);
    Text lines = { 0 };
    append(&lines, "bytes = %zu\nu32_at = [", descriptor->block.size);
    for (size_t at = 0; at + 4 <= descriptor->block.size; at += 4) {
        uint32_t word;
        memcpy(&word, descriptor->block.data + at, sizeof word);
        append(&lines, " { offset = %zu, u32 = [%u] },", at, word);
    }
    append(&lines, " ]\n");
    table->lines = lines.data;
}

static void add_image(Inputs *inputs, uint32_t set, const Descriptor *descriptor) {
    enum { GENERAL = 1, TRANSFER_SOURCE_LAYOUT = 6, COLOUR = 1, CUBE = 3 };
    DescriptorUse use = descriptor_use(descriptor, 0);
    const ViewInfo *view = use.view;
    const Image *found = view ? find_object(IMAGES, view->image) : NULL;
    if (!found) {
        add_missing(inputs, false, "image %s", inputs->name);
        return;
    }
    const ImageInfo *image = &found->info;
    SubresourceRange range = view->range;
    if (range.levels == ~0u) range.levels = image->levels - range.level;
    if (range.layers == ~0u) range.layers = image->layers - range.layer;
    begin_resource(inputs, set, descriptor, &use);
    append(&inputs->resources, ",\"image\":%" PRIu64 ",\"range\":[%u,%u,%u,%u],\"aspects\":%u,\"layout\":%d}", found->id, range.level, range.levels,
           range.layer, range.layers, range.aspect, descriptor->image.layout);
    if (!inputs->capture) return;
    uint32_t size[3];
    for (int i = 0; i < 3; i++) size[i] = image->size[i] >> range.level ? image->size[i] >> range.level : 1;
    bool is_layered = view->view_type >= CUBE;
    Text lines = { 0 };
    append(&lines, "size = [%u, %u, %u]\nmips = %u\n", size[0], is_layered && image->image_type == 0 ? range.layers : size[1],
           is_layered && image->image_type != 0 ? range.layers : size[2], range.levels);
    bool has_identity_swizzle = true;
    for (int i = 0; i < 4; i++) has_identity_swizzle = has_identity_swizzle && (view->components[i] == 0 || view->components[i] == 3 + i);
    int format = find_format(view->format);
    uint64_t texel_bytes = format < 0 ? 0 : (uint64_t)(FORMATS[format].bits / 8 * FORMATS[format].components), bytes = 0;
    ImageCopy regions[16];
    bool is_recordable = format >= 0 && has_identity_swizzle && range.levels <= 16 && image->samples == 1 && range.aspect == COLOUR && (image->usage & 1);
    for (uint32_t level = 0; is_recordable && level < range.levels; level++) {
        for (int i = 0; i < 3; i++) size[i] = image->size[i] >> (range.level + level) ? image->size[i] >> (range.level + level) : 1;
        regions[level] = (ImageCopy){ bytes, 0, 0, range.aspect, range.level + level, range.layer, range.layers, { 0 }, { size[0], size[1], size[2] } };
        bytes += (uint64_t)size[0] * size[1] * size[2] * range.layers * texel_bytes;
    }
    Readback *readback = is_recordable && bytes <= MAX_IMAGE_BYTES ? add_readback(inputs, bytes) : NULL;
    if (!readback) {
        add_missing(inputs, true, "contents of image %s: format %d, %u levels, %u samples", inputs->name, view->format, range.levels, image->samples);
        readback = add_table(inputs);
    } else {
        readback->format = view->format;
        bool is_general = descriptor->image.layout == GENERAL;
        int32_t layout = is_general ? GENERAL : TRANSFER_SOURCE_LAYOUT;
        ImageBarrier barrier = { 45, NULL, WRITE_ANY, READ_TRANSFER, descriptor->image.layout, layout, ~0u, ~0u, view->image, range };
        typedef void (*Barrier)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const void *, uint32_t, const void *);
        Handle commands = inputs->commands->handle;
        Barrier barriers = (Barrier)next_function(commands, "vkCmdPipelineBarrier");
        if (!is_general) barriers(commands, STAGE_ALL, STAGE_TRANSFER, 0, 0, NULL, 0, NULL, 1, &barrier);
        CALL_NEXT(commands, void, vkCmdCopyImageToBuffer, (Handle, uint64_t, int32_t, uint64_t, uint32_t, const void *))(
            commands, view->image, layout, readback->buffer, range.levels, regions);
        barrier.from = READ_TRANSFER;
        barrier.to = READ_ANY | WRITE_ANY;
        barrier.from_layout = layout;
        barrier.to_layout = descriptor->image.layout;
        if (!is_general) barriers(commands, STAGE_TRANSFER, STAGE_ALL, 0, 0, NULL, 0, NULL, 1, &barrier);
    }
    readback->lines = lines.data;
    snprintf(readback->table, sizeof readback->table, "[image.\"%s\"]", inputs->name);
}

/* The samplers of an array are equal in case.toml. */
static void add_sampler(Inputs *inputs, const DescriptorSet *bound, uint32_t set, const Descriptor *descriptor) {
    static const char *const EDGES[] = { "repeat", "mirror", "clamp" };
    if (!inputs->capture) return;
    for (uint32_t i = 0; i < bound->count && descriptor->element > 0; i++) {
        const Descriptor *first = &bound->descriptors[i];
        if (first->binding != descriptor->binding || first->element > 0) continue;
        if (first->image.sampler != descriptor->image.sampler) add_missing(inputs, true, "sampler %s, which differs from %u.%u[0]", inputs->name, set, descriptor->binding);
        return;
    }
    const SamplerInfo *sampler = find_object(SAMPLERS, descriptor->image.sampler);
    bool is_supported = sampler && sampler->mag_filter == sampler->min_filter && sampler->mag_filter < 2 && sampler->address_modes[0] < 3
        && sampler->address_modes[0] == sampler->address_modes[1];
    if (!is_supported) {
        add_missing(inputs, true, "sampler %s: a filter or address mode that is not computed", inputs->name);
        return;
    }
    Readback *table = add_table(inputs);
    snprintf(table->table, sizeof table->table, "[sampler.\"%u.%u\"]", set, descriptor->binding);
    Text lines = { 0 };
    append(&lines, "filter = \"%s\"\nedge = \"%s\"\n", sampler->mag_filter ? "linear" : "nearest", EDGES[sampler->address_modes[0]]);
    table->lines = lines.data;
}

/* Buffers with an address in the push constants. */
static void add_address_buffers(Inputs *inputs) {
    const Commands *commands = inputs->commands;
    for (unsigned at = 0; at + 8 <= MAX_PUSH_BYTES && addressed; at += 8) {
        uint64_t word;
        memcpy(&word, commands->push + at, sizeof word);
        if (!commands->is_pushed[at] || !commands->is_pushed[at + 7] || !word) continue;
        const Buffer *buffer = find_addressed(word);
        if (!buffer) continue;
        uint64_t offset = word - buffer->address, size = buffer->size - offset;
        append(&inputs->resources, "%s{\"push\":%u,\"reads\":%" PRIu64 ",\"may_write\":true,\"buffer\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"size\":%" PRIu64 "}",
               inputs->resources.length ? "," : "", at, SYNC_STORAGE_READ, buffer->id, offset, size);
        if (!inputs->capture) continue;
        Readback *readback = add_readback(inputs, size);
        if (!readback) {
            add_missing(inputs, false, "buffer behind push@%u", at);
            continue;
        }
        Text lines = { 0 };
        append(&lines, "at = \"push@%u\"\n", at);
        snprintf(readback->table, sizeof readback->table, "[address.\"push%u\"]", at);
        readback->lines = lines.data;
        copy_buffer(commands->handle, readback, buffer->handle, offset);
    }
}

/* Copies the buffers that addresses in memory may name. Which of them a case has is known when the memory is. */
static void copy_pointed_buffers(Inputs *inputs) {
    if (!inputs->capture || !inputs->capture->pipeline->has_addresses || !addressed) return;
    Handle device = inputs->commands->device;
    uint64_t search = search_addresses(device), bytes = 0;
    for (const Buffer *buffer = addressed; buffer; buffer = buffer->next) {
        if (buffer->device != device || buffer->pointed_at != search || bytes + buffer->size > MAX_WATCHED_BYTES) continue;
        bytes += buffer->size;
        Readback *readback = add_readback(inputs, buffer->size);
        if (!readback) continue;
        readback->pointed = buffer->id, readback->address = buffer->address;
        copy_buffer(inputs->commands->handle, readback, buffer->handle, 0);
    }
}

/* Dynamic offsets are ordered by binding, then by element. */
static uint32_t dynamic_offset(const DescriptorSet *set, const uint32_t *offsets, const Descriptor *descriptor) {
    uint32_t before = 0;
    if (!is_dynamic(descriptor->kind) || !set->layout || !offsets) return 0;
    for (uint32_t i = 0; i < set->layout->count; i++) {
        const LayoutBinding *binding = &set->layout->bindings[i];
        if (binding->binding < descriptor->binding && is_dynamic(binding->type)) before += binding->count;
    }
    return offsets[before + descriptor->element];
}

static const DescriptorSet *bound_set(const BindPoint *point, uint32_t number) {
    const DescriptorSet *pushed = point->pushed_sets[number];
    return pushed ? pushed : find_object(DESCRIPTOR_SETS, point->sets[number]);
}

/* Ranges of memory that descriptors of a dispatch name. */
typedef struct UsedRange {
    uint64_t memory, from, to;
} UsedRange;

/* Adds how a range overlaps the earlier ones: dispatches of a variant alias the same descriptors. */
static uint64_t hash_overlaps(uint64_t hash, UsedRange *ranges, unsigned *count, const Buffer *buffer, const DescriptorUse *use) {
    enum { MAX_RANGES = 256 };
    if (!buffer || *count == MAX_RANGES) return hash;
    /* Buffers without known memory overlap by their id alone. */
    UsedRange range = { buffer->memory ? buffer->memory : buffer->id, buffer->offset + use->offset, buffer->offset + use->offset + use->size };
    for (unsigned i = 0; i < *count; i++) {
        if (ranges[i].memory != range.memory || range.from >= ranges[i].to || ranges[i].from >= range.to) continue;
        uint64_t relation[2] = { i, range.from - ranges[i].from };
        hash = hash_bytes(hash, relation, sizeof relation);
    }
    ranges[(*count)++] = range;
    return hash;
}

static uint64_t find_variant(const Commands *commands) {
    UsedRange ranges[256];
    unsigned range_count = 0;
    const BindPoint *point = &commands->points[COMPUTE_POINT];
    uint64_t hash = hash_bytes(0xcbf29ce484222325, commands->push, point->pipeline->push_size);
    hash = hash_bytes(hash, commands->is_pushed, point->pipeline->push_size);
    for (uint32_t number = 0; number < point->pipeline->set_count; number++) {
        const DescriptorSet *set = bound_set(point, number);
        for (uint32_t i = 0; set && i < set->count; i++) {
            const Descriptor *descriptor = &set->descriptors[i];
            if (!is_for_compute(set, descriptor)) continue;
            DescriptorUse use = descriptor_use(descriptor, dynamic_offset(set, point->offsets[number], descriptor));
            const Image *image = use.view ? find_object(IMAGES, use.view->image) : NULL;
            hash = hash_bytes(hash, &use.size, sizeof use.size);
            hash = hash_overlaps(hash, ranges, &range_count, find_object(BUFFERS, use.buffer), &use);
            if (image) hash = hash_bytes(hash, image->info.size, sizeof image->info.size);
            if (use.view) hash = hash_bytes(hash, &use.view->range, sizeof use.view->range);
            hash = hash_bytes(hash, descriptor->block.data, descriptor->block.size);
        }
    }
    return hash;
}

/* Returns a capture if more cases of a variant are wanted. */
static Capture *begin_capture(Commands *commands, uint64_t kind, uint64_t hash) {
    DispatchKind *all = &dispatch_kinds[kind];
    unsigned at = 0;
    while (at < all->variant_count && all->variants[at].hash != hash) at++;
    if (at == MAX_VARIANTS || kept_per_kind == 0) return NULL;
    Variant *variant = &all->variants[at];
    if (at == all->variant_count) {
        all->variant_count++;
        *variant = (Variant){ .hash = hash };
    }
    if (variant->captured >= MAX_CAPTURES + kept_per_kind || variant->discarded >= MAX_DISCARDED) return NULL;
    variant->captured++;
    Capture *capture = allocate(sizeof *capture);
    *capture = (Capture){ .pipeline = commands->points[COMPUTE_POINT].pipeline, .kind = kind, .variant = at, .number = ++all->last_number };
    for (unsigned push = 0; push + 4 <= MAX_PUSH_BYTES; push += 4) {
        uint32_t word;
        memcpy(&word, commands->push + push, sizeof word);
        if (commands->is_pushed[push]) append(&capture->push, " { offset = %u, u32 = [%u] },", push, word);
    }
    capture->next = commands->captures;
    return commands->captures = capture;
}

static uint64_t find_kind(const Commands *commands, const uint32_t grid[3]) {
    const BindPoint *point = &commands->points[COMPUTE_POINT];
    uint64_t hash = point->pipeline->hash;
    if (grid) hash = hash_bytes(hash, grid, 3 * sizeof *grid);
    for (uint32_t number = 0; number < point->pipeline->set_count; number++) {
        const DescriptorSet *set = bound_set(point, number);
        for (uint32_t i = 0; set && i < set->count; i++) {
            if (!is_for_compute(set, &set->descriptors[i])) continue;
            uint32_t words[4] = { number, set->descriptors[i].binding, set->descriptors[i].element, (uint32_t)set->descriptors[i].kind };
            hash = hash_bytes(hash, words, sizeof words);
        }
    }
    for (uint64_t i = dispatch_kind_count; i-- > 0;)
        if (dispatch_kinds[i].hash == hash) return i;
    if ((dispatch_kind_count & (dispatch_kind_count - 1)) == 0) {
        dispatch_kinds = realloc(dispatch_kinds, (dispatch_kind_count ? 2 * dispatch_kind_count : 1) * sizeof *dispatch_kinds);
        if (!dispatch_kinds) abort();
    }
    dispatch_kinds[dispatch_kind_count] = (DispatchKind){ .hash = hash };
    uint64_t kind = dispatch_kind_count++;
    write_module(&point->pipeline->code);
    if (open_journal()) {
        char path[4096];
        snprintf(path, sizeof path - 16, "%s/kinds/%" PRIu64, folder, kind);
        mkdir(path, 0777);
        strcat(path, "/module.spv");
        FILE *file = fopen(path, "wb");
        if (file) {
            fwrite(point->pipeline->code.data, 1, point->pipeline->code.size, file);
            fclose(file);
        }
    }
    Text line = { 0 };
    append(&line, "{\"event\":\"kind\",\"kind\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\",\"module\":\"%016" PRIx64 "\",\"entry\":", kind, hash,
           point->pipeline->code.hash);
    append_string(&line, point->pipeline->entry);
    const char *name = point->pipeline->name ? point->pipeline->name : point->pipeline->code.name;
    if (name) {
        append(&line, ",\"name\":");
        append_string(&line, name);
    }
    append(&line, ",\"subgroup_size\":%u}", point->pipeline->subgroup_size);
    write_line(&line);
    return kind;
}

/* Called before a dispatch is recorded. */
static void record_dispatch(Handle handle, const uint32_t grid[3], uint64_t indirect, uint64_t indirect_offset, const char *note) {
    LOCK;
    Commands *commands = find_commands(handle);
    const BindPoint *point = commands ? &commands->points[COMPUTE_POINT] : NULL;
    if (!commands || !point->pipeline || !open_journal()) {
        if (commands) {
            begin_command(commands, "vkCmdDispatch", UNKNOWN_ACCESSES("its shader is not recorded: a shader object or a pipeline of a library"));
            end_command(commands);
        }
        UNLOCK;
        return;
    }
    read_descriptor_buffers(commands, point);
    uint64_t kind = find_kind(commands, grid), variant = find_variant(commands);
    Inputs inputs = { .commands = commands, .capture = begin_capture(commands, kind, variant) };
    if (inputs.capture && grid) memcpy(inputs.capture->grid, grid, sizeof inputs.capture->grid);
    if (note) add_missing(&inputs, false, "%s", note);
    if (commands->is_conditional) add_missing(&inputs, false, "the condition of conditional rendering");
    typedef void (*Barrier)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const void *, uint32_t, const void *);
    Barrier barriers = (Barrier)next_function(handle, "vkCmdPipelineBarrier");
    MemoryBarrier before = { 46, NULL, WRITE_ANY, READ_TRANSFER }, after = { 46, NULL, WRITE_TRANSFER, READ_ANY | WRITE_ANY };
    if (inputs.capture) barriers(handle, STAGE_ALL, STAGE_TRANSFER, 0, 1, &before, 0, NULL, 0, NULL);
    if (!grid && inputs.capture) {
        inputs.capture->indirect = create_readback(commands->device, 12);
        if (inputs.capture->indirect) copy_buffer(handle, inputs.capture->indirect, indirect, indirect_offset);
        else add_missing(&inputs, false, "grid of an indirect dispatch");
    }
    for (uint32_t number = 0; number < point->pipeline->set_count; number++) {
        const DescriptorSet *set = bound_set(point, number);
        if (set && set->is_unread) add_missing(&inputs, false, "descriptors of set %u: their buffer is not mapped, or their bytes are copies", number);
        if (set && set->is_cut) add_missing(&inputs, false, "large arrays of set %u", number);
        for (uint32_t i = 0; set && i < set->count; i++) {
            const Descriptor *descriptor = &set->descriptors[i];
            if (!is_for_compute(set, descriptor)) continue;
            uint32_t place[2] = { number, descriptor->binding };
            inputs.place = place;
            name_descriptor(&inputs, set, number, descriptor);
            if (descriptor->kind == SAMPLER || descriptor->kind == IMAGE_AND_SAMPLER) add_sampler(&inputs, set, number, descriptor);
            if (descriptor->kind >= IMAGE_AND_SAMPLER && descriptor->kind <= STORAGE_IMAGE) add_image(&inputs, number, descriptor);
            if (descriptor->kind >= UNIFORM_TEXELS && descriptor->kind <= STORAGE_BUFFER_DYNAMIC)
                add_buffer(&inputs, number, descriptor, dynamic_offset(set, point->offsets[number], descriptor));
            if (descriptor->kind == INLINE_UNIFORM_BLOCK) add_block(&inputs, descriptor);
            else if (descriptor->kind > STORAGE_BUFFER_DYNAMIC)
                add_missing(&inputs, false, "descriptor %s of type %d", inputs.name, descriptor->kind);
            inputs.place = NULL;
        }
    }
    add_address_buffers(&inputs);
    copy_pointed_buffers(&inputs);
    if (inputs.capture) barriers(handle, STAGE_TRANSFER, STAGE_ALL | 0x4000, 0, 1, &after, 0, NULL, 0, NULL);
    ADD_COMMAND(commands, "{\"op\":\"dispatch\",\"kind\":%" PRIu64 ",\"variant\":%" PRIu64, kind, variant);
    if (grid) append(&commands->list, ",\"grid\":[%u,%u,%u]", grid[0], grid[1], grid[2]);
    else append(&commands->list, ",\"indirect\":{\"buffer\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"size\":12}", buffer_id(indirect), indirect_offset);
    if (inputs.capture) append(&commands->list, ",\"case\":%" PRIu64, inputs.capture->number);
    uint64_t use = add_late_uses(commands, point, point->pipeline->set_count);
    if (use) append(&commands->list, ",\"late_use\":%" PRIu64, use);
    append(&commands->list, ",\"resources\":[%s]", inputs.resources.data ? inputs.resources.data : "");
    append(&commands->list, ",\"missing\":[%s]", inputs.missing.data ? inputs.missing.data : "");
    append(&commands->list, ",\"missing_contents\":[%s]}", inputs.missing_contents.data ? inputs.missing_contents.data : "");
    free(inputs.resources.data);
    free(inputs.missing.data);
    free(inputs.missing_contents.data);
    UNLOCK;
}

static void layer_vkCmdDispatch(Handle handle, uint32_t x, uint32_t y, uint32_t z) {
    record_dispatch(handle, (uint32_t[3]){ x, y, z }, 0, 0, NULL);
    CALL_NEXT(handle, void, vkCmdDispatch, (Handle, uint32_t, uint32_t, uint32_t))(handle, x, y, z);
}

static void layer_vkCmdDispatchIndirect(Handle handle, uint64_t buffer, uint64_t offset) {
    record_dispatch(handle, NULL, buffer, offset, NULL);
    CALL_NEXT(handle, void, vkCmdDispatchIndirect, (Handle, uint64_t, uint64_t))(handle, buffer, offset);
}

#define DISPATCH_BASE(name) \
    static void layer_##name(Handle handle, uint32_t a, uint32_t b, uint32_t c, uint32_t x, uint32_t y, uint32_t z) { \
        record_dispatch(handle, (uint32_t[3]){ x, y, z }, 0, 0, a | b | c ? "first workgroup that is not 0,0,0" : NULL); \
        CALL_NEXT(handle, void, name, (Handle, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t))(handle, a, b, c, x, y, z); \
    }
DISPATCH_BASE(vkCmdDispatchBase)
DISPATCH_BASE(vkCmdDispatchBaseKHR)

#define DISPATCH_FUNCTIONS \
    LAYER_FUNCTION(vkCmdDispatch) LAYER_FUNCTION(vkCmdDispatchIndirect) LAYER_FUNCTION(vkCmdDispatchBase) LAYER_FUNCTION(vkCmdDispatchBaseKHR)
