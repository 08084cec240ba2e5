/* Modules, pipelines, and what descriptors name. */

static Bytes *copy_code(const ModuleInfo *info) {
    Bytes *code = allocate(sizeof *code);
    *code = (Bytes){ info->size, duplicate(info->code, info->size), hash_bytes(0xcbf29ce484222325, info->code, info->size), NULL };
    return code;
}

static Result layer_vkCreateShaderModule(Handle device, const ModuleInfo *info, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateShaderModule, (Handle, const ModuleInfo *, const void *, uint64_t *))(
        device, info, allocator, created);
    LOCK;
    if (result == SUCCESS) store_object(MODULES, *created, copy_code(info));
    UNLOCK;
    return result;
}

static uint32_t query_subgroup_size(Handle device) {
    struct { int32_t type; void *next; uint32_t size, stages, operations, quads; } subgroup = { SUBGROUP_PROPERTIES, NULL, 0, 0, 0, 0 };
    struct { int32_t type; void *next; char rest[4096]; } all = { PROPERTIES2, &subgroup, { 0 } };
    const DeviceState *state = device_state(device);
    if (state->instance->get_properties2) state->instance->get_properties2(state->physical, &all);
    return subgroup.size;
}

static bool is_specialized(const SpecializationInfo *given, uint32_t id) {
    for (uint32_t i = 0; given && i < given->count; i++)
        if (given->entries[i].id == id) return true;
    return false;
}

static void append_constant(Text *constants, uint32_t id, uint64_t value) {
    append(constants, "%s \"%u\" = %" PRId64, constants->length ? "," : "", id, (int64_t)value);
}

/* Appends the defaults of the specialization constants that a program does not set. */
static void add_default_constants(Text *constants, const Bytes *code, const SpecializationInfo *given) {
    enum { HEADER_WORDS = 5, DECORATE = 71, SPEC_ID = 1, SPEC_TRUE = 48, SPEC_FALSE = 49, SPEC_CONSTANT = 50 };
    const uint32_t *words = (const uint32_t *)(const void *)code->data;
    size_t count = code->size / 4, length;
    for (size_t at = HEADER_WORDS; at < count && (length = words[at] >> 16) && length <= count - at; at += length) {
        if ((words[at] & 0xffff) != DECORATE || length != 4 || words[at + 2] != SPEC_ID || is_specialized(given, words[at + 3])) continue;
        size_t size;
        for (size_t of = HEADER_WORDS; of < count && (size = words[of] >> 16) && size <= count - of; of += size) {
            uint32_t op = words[of] & 0xffff;
            if (op < SPEC_TRUE || op > SPEC_CONSTANT || size < 3 || words[of + 2] != words[at + 1]) continue;
            uint64_t value = op == SPEC_TRUE;
            if (op == SPEC_CONSTANT && size > 3) value = words[of + 3] | (size > 4 ? (uint64_t)words[of + 4] << 32 : 0);
            append_constant(constants, words[at + 3], value);
        }
    }
}

/* Returns the specialization constants of a stage as the members of an inline table of TOML. */
static char *stage_constants(const Bytes *code, const SpecializationInfo *given) {
    Text constants = { 0 };
    for (uint32_t i = 0; given && i < given->count; i++) {
        const SpecializationEntry *entry = &given->entries[i];
        if (entry->size > sizeof(int64_t)) continue;
        uint64_t value = 0;
        memcpy(&value, (const char *)given->data + entry->offset, entry->size);
        append_constant(&constants, entry->id, value);
    }
    if (code) add_default_constants(&constants, code, given);
    append(&constants, "%s", "");
    return constants.data;
}

static bool has_capability(const Bytes *code, uint32_t capability) {
    enum { HEADER_WORDS = 5, CAPABILITY = 2 << 16 | 17 };
    const uint32_t *words = (const uint32_t *)(const void *)code->data;
    for (size_t at = HEADER_WORDS; at + 1 < code->size / 4 && words[at] == CAPABILITY; at += 2)
        if (words[at + 1] == capability) return true;
    return false;
}

static Robustness device_robustness[MAX_DEVICES];

static Robustness enabled_robustness(const DeviceInfo *info) {
    enum { FEATURES2 = 1000059000, ROBUSTNESS2 = 1000286000, IMAGE_ROBUSTNESS = 1000335000, FEATURES_1_3 = 53 };
    uint32_t buffers = info->features && *(const uint32_t *)info->features, images = 0;
    for (const Header *next = info->next; next; next = next->next) {
        const struct { int32_t type; const void *next; uint32_t first, second; } *at = (const void *)next;
        if (next->type == FEATURES2 && at->first && !buffers) buffers = 1;
        if (next->type == ROBUSTNESS2 && at->first) buffers = 2;
        if (next->type == ROBUSTNESS2 && at->second) images = 1;
        if ((next->type == IMAGE_ROBUSTNESS || next->type == FEATURES_1_3) && at->first) images = 1;
    }
    return (Robustness){ buffers, buffers, images };
}

/* The structure of a stage replaces that of its pipeline. */
static Robustness stage_robustness(Handle device, const Header *pipeline, const Header *stage) {
    enum { PIPELINE_ROBUSTNESS = 1000068000, DEVICE_DEFAULT = 0, DISABLED = 1 };
    Robustness robustness = device_robustness[device_index(device)];
    const RobustnessInfo *info = NULL;
    for (const Header *at = pipeline; at; at = at->next)
        if (at->type == PIPELINE_ROBUSTNESS) info = (const RobustnessInfo *)at;
    for (const Header *at = stage; at; at = at->next)
        if (at->type == PIPELINE_ROBUSTNESS) info = (const RobustnessInfo *)at;
    if (info && info->storage != DEVICE_DEFAULT) robustness.storage = (uint32_t)(info->storage - DISABLED);
    if (info && info->uniform != DEVICE_DEFAULT) robustness.uniform = (uint32_t)(info->uniform - DISABLED);
    if (info && info->images != DEVICE_DEFAULT) robustness.images = info->images != DISABLED;
    return robustness;
}

static Pipeline *record_pipeline(Handle device, const PipelineInfo *info) {
    Pipeline *pipeline = allocate(sizeof *pipeline);
    pipeline->subgroup_size = query_subgroup_size(device);
    const PipelineLayout *layout = find_object(PIPELINE_LAYOUTS, info->layout);
    pipeline->push_size = layout ? layout->push_size : MAX_PUSH_BYTES;
    pipeline->set_count = layout && layout->set_count < MAX_SETS ? layout->set_count : MAX_SETS;
    const Bytes *code = find_object(MODULES, info->stage.module);
    for (const Header *at = info->stage.next; at; at = at->next) {
        if (at->type == MODULE_INFO && !code) code = copy_code((const ModuleInfo *)at);
        if (at->type == SUBGROUP_SIZE_INFO) pipeline->subgroup_size = ((const SubgroupSize *)at)->size;
    }
    enum { PHYSICAL_ADDRESSES = 5347 };
    if (code) pipeline->code = *code;
    pipeline->has_addresses = code && has_capability(code, PHYSICAL_ADDRESSES);
    pipeline->entry = duplicate(info->stage.entry, strlen(info->stage.entry) + 1);
    pipeline->constants = stage_constants(code, info->stage.specialization);
    uint64_t hash = hash_bytes(pipeline->code.hash, pipeline->entry, strlen(pipeline->entry) + 1);
    hash = hash_bytes(hash, pipeline->constants, strlen(pipeline->constants));
    pipeline->robustness = stage_robustness(device, info->next, info->stage.next);
    hash = hash_bytes(hash, &pipeline->robustness, sizeof pipeline->robustness);
    pipeline->hash = hash_bytes(hash, &pipeline->subgroup_size, sizeof pipeline->subgroup_size);
    return pipeline;
}

static Result layer_vkCreateComputePipelines(
    Handle device, uint64_t cache, uint32_t count, const PipelineInfo *infos, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateComputePipelines,
                          (Handle, uint64_t, uint32_t, const PipelineInfo *, const void *, uint64_t *))(
        device, cache, count, infos, allocator, created);
    LOCK;
    for (uint32_t i = 0; i < count; i++)
        if (result == SUCCESS && created[i]) store_object(PIPELINES, created[i], record_pipeline(device, &infos[i]));
    UNLOCK;
    return result;
}

static void write_module(const Bytes *code) {
    char path[4096];
    if (!open_journal()) return;
    snprintf(path, sizeof path - 32, "%s/modules", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/modules/%016" PRIx64 ".spv", folder, code->hash);
    FILE *file = access(path, F_OK) == 0 ? NULL : fopen(path, "wb");
    if (!file) return;
    fwrite(code->data, 1, code->size, file);
    fclose(file);
}

/* Records which attachments the draws of a pipeline may access. What is dynamic may be any. */
static void record_outputs(Pipeline *pipeline, const GraphicsPipelineInfo *info) {
    enum { ORDERED_DEPTH_OR_STENCIL = 3, ORDERED_COLOURS = 1, LOGIC_COPY = 3, ALL = 0xffff };
    enum { DEPTH_TEST = 1000267006, DEPTH_WRITE_ENABLE = 1000267007, STENCIL_TEST = 1000267010, STENCIL_MASK = 7, STENCIL_OPERATIONS = 1000267011 };
    enum { COLOUR_WRITES = 1000381000, WRITE_MASK = 1000455012, BLEND_ENABLE = 1000455010, LOGIC_ENABLE = 1000455009, ADVANCED_BLEND = 1000455018 };
    const TestInfo *tests = info->states[6];
    const BlendInfo *blend = info->states[7];
    bool has_depth = tests && (tests->has_depth || tests->has_bounds), writes_depth = tests && tests->writes_depth;
    bool has_stencil = tests && tests->has_stencil, writes_stencil = false;
    for (uint32_t i = 0; blend && i < blend->count && i < MAX_OUTPUTS; i++) {
        const BlendAttachment *at = &blend->attachments[i];
        /* A write of some components is one of the texel. */
        if (at->write_mask) pipeline->output_writes |= 1u << i;
        if (at->write_mask && (at->is_enabled || (blend->is_logic_enabled && blend->logic != LOGIC_COPY))) pipeline->output_reads |= 1u << i;
    }
    for (int i = 0; tests && i < 2; i++) {
        const StencilState *side = &tests->sides[i];
        writes_stencil = writes_stencil || (side->write_mask && (side->fail || side->pass || side->depth_fail));
    }
    const DynamicStateInfo *dynamic = info->states[8];
    for (uint32_t i = 0; dynamic && i < dynamic->count; i++) {
        int32_t state = dynamic->states[i];
        if (state == COLOUR_WRITES || state == WRITE_MASK) pipeline->output_writes = ALL;
        if (state == BLEND_ENABLE || state == LOGIC_ENABLE || state == ADVANCED_BLEND) pipeline->output_reads = ALL;
        has_depth = has_depth || state == DEPTH_TEST;
        writes_depth = writes_depth || state == DEPTH_WRITE_ENABLE;
        has_stencil = has_stencil || state == STENCIL_TEST;
        writes_stencil = writes_stencil || state == STENCIL_MASK || state == STENCIL_OPERATIONS;
    }
    pipeline->has_tests = has_depth || has_stencil;
    pipeline->writes_tests = (has_depth && writes_depth) || (has_stencil && writes_stencil);
    pipeline->has_ordered_inputs = (tests && tests->flags & ORDERED_DEPTH_OR_STENCIL) || (blend && blend->flags & ORDERED_COLOURS);
}

/* Without `stages`, the draws of a pipeline have unknown accesses: it has libraries, or a module that is not known. */
static void record_graphics_pipeline(Pipeline *pipeline, const GraphicsPipelineInfo *info) {
    enum { LIBRARY = 0x800, LIBRARIES = 1000290000, LIBRARY_PARTS = 1000320002, DYNAMIC_STRIDE = 1000267005, DYNAMIC_VERTICES = 1000352000 };
    bool is_known = !(info->flags & LIBRARY);
    for (const Header *at = info->next; at; at = at->next) is_known = is_known && at->type != LIBRARIES && at->type != LIBRARY_PARTS;
    const PipelineLayout *layout = find_object(PIPELINE_LAYOUTS, info->layout);
    pipeline->set_count = layout && is_known && layout->set_count < MAX_SETS ? layout->set_count : MAX_SETS;
    if (!is_known) return;
    pipeline->shaders = allocate(info->stage_count * sizeof *pipeline->shaders);
    for (uint32_t i = 0; i < info->stage_count; i++) {
        const StageInfo *stage = &info->stages[i];
        const Bytes *code = find_object(MODULES, stage->module);
        for (const Header *at = stage->next; at && !code; at = at->next)
            if (at->type == MODULE_INFO) code = copy_code((const ModuleInfo *)at);
        if (!code) {
            pipeline->stages = 0;
            return;
        }
        write_module(code);
        pipeline->shaders[pipeline->shader_count++] = (Shader){ stage->stage, code->hash, duplicate(stage->entry, strlen(stage->entry) + 1),
            stage_constants(code, stage->specialization) };
        pipeline->stages |= stage->stage;
    }
    const RasterizationInfo *rasterization = info->states[4];
    if (!rasterization || !rasterization->discards) record_outputs(pipeline, info);
    const VertexInputInfo *vertices = pipeline->stages & 1 ? info->states[0] : NULL;
    const DynamicStateInfo *dynamic = info->states[8];
    for (uint32_t i = 0; dynamic && i < dynamic->count; i++)
        pipeline->has_dynamic_vertices = pipeline->has_dynamic_vertices || dynamic->states[i] == DYNAMIC_STRIDE || dynamic->states[i] == DYNAMIC_VERTICES;
    if (!vertices || pipeline->has_dynamic_vertices) return;
    pipeline->binding_count = vertices->binding_count;
    pipeline->bindings = duplicate(vertices->bindings, vertices->binding_count * sizeof *vertices->bindings);
    pipeline->attribute_count = vertices->attribute_count;
    pipeline->attributes = duplicate(vertices->attributes, vertices->attribute_count * sizeof *vertices->attributes);
}

static Result layer_vkCreateGraphicsPipelines(
    Handle device, uint64_t cache, uint32_t count, const GraphicsPipelineInfo *infos, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateGraphicsPipelines,
                          (Handle, uint64_t, uint32_t, const GraphicsPipelineInfo *, const void *, uint64_t *))(
        device, cache, count, infos, allocator, created);
    LOCK;
    for (uint32_t i = 0; i < count; i++)
        if (result == SUCCESS && created[i]) record_graphics_pipeline(store_object(PIPELINES, created[i], allocate(sizeof(Pipeline))), &infos[i]);
    UNLOCK;
    return result;
}

static Result layer_vkCreatePipelineLayout(Handle device, const PipelineLayoutInfo *info, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreatePipelineLayout, (Handle, const PipelineLayoutInfo *, const void *, uint64_t *))(
        device, info, allocator, created);
    LOCK;
    if (result == SUCCESS) {
        PipelineLayout *layout = store_object(PIPELINE_LAYOUTS, *created, allocate(sizeof *layout));
        layout->set_count = info->set_count;
        layout->sets = allocate(info->set_count * sizeof *layout->sets);
        for (uint32_t i = 0; i < info->set_count; i++) layout->sets[i] = find_object(LAYOUTS, info->sets[i]);
        for (uint32_t i = 0; i < info->range_count; i++) {
            uint32_t end = info->ranges[i].offset + info->ranges[i].size;
            if (info->ranges[i].stages & COMPUTE_STAGE && end > layout->push_size) layout->push_size = end > MAX_PUSH_BYTES ? MAX_PUSH_BYTES : end;
        }
    }
    UNLOCK;
    return result;
}

/* Descriptors. */

static Result layer_vkCreateDescriptorSetLayout(Handle device, const LayoutInfo *info, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateDescriptorSetLayout, (Handle, const LayoutInfo *, const void *, uint64_t *))(
        device, info, allocator, created);
    if (result != SUCCESS) return result;
    SetLayout *layout = allocate(sizeof *layout);
    enum { UPDATE_AFTER_BIND_POOL = 2 };
    *layout = (SetLayout){ *created, info->count, duplicate(info->bindings, info->count * sizeof *info->bindings), (info->flags & UPDATE_AFTER_BIND_POOL) != 0 };
    for (uint32_t i = 0; i < info->count; i++) {
        LayoutBinding *binding = &layout->bindings[i];
        bool has_samplers = binding->samplers && binding->type <= IMAGE_AND_SAMPLER;
        binding->samplers = has_samplers ? duplicate(binding->samplers, binding->count * sizeof(uint64_t)) : NULL;
    }
    LOCK;
    store_object(LAYOUTS, *created, layout);
    UNLOCK;
    return result;
}

/* Elements beyond the end of a binding are those of the next one (VkWriteDescriptorSet, "consecutive binding updates"). */
static void move_to_binding(const SetLayout *layout, uint32_t *binding, uint32_t *element) {
    for (uint32_t i = 0; layout && i < layout->count; i++) {
        const LayoutBinding *at = &layout->bindings[i];
        if (at->binding != *binding || *element < at->count) continue;
        *element -= at->count;
        ++*binding;
        i = ~0u; /* Bindings of a layout have any order. */
    }
}

static const LayoutBinding *find_binding(const SetLayout *layout, uint32_t binding) {
    for (uint32_t i = 0; layout && i < layout->count; i++)
        if (layout->bindings[i].binding == binding) return &layout->bindings[i];
    return NULL;
}

static Descriptor *find_or_add_descriptor(DescriptorSet *set, uint32_t binding, uint32_t element) {
    enum { MAX_ELEMENTS = 256 };
    static Descriptor unstored;
    move_to_binding(set->layout, &binding, &element);
    if (element >= MAX_ELEMENTS) {
        set->is_cut = true;
        return &unstored;
    }
    for (uint32_t i = 0; i < set->count; i++)
        if (set->descriptors[i].binding == binding && set->descriptors[i].element == element) return &set->descriptors[i];
    set->descriptors = realloc(set->descriptors, (set->count + 1) * sizeof *set->descriptors);
    if (!set->descriptors) abort();
    set->descriptors[set->count] = (Descriptor){ .binding = binding, .element = element, .kind = -1 };
    return &set->descriptors[set->count++];
}

static void add_immutable_samplers(DescriptorSet *set) {
    for (uint32_t j = 0; set->layout && j < set->layout->count; j++) {
        const LayoutBinding *binding = &set->layout->bindings[j];
        for (uint32_t element = 0; binding->samplers && element < binding->count; element++) {
            Descriptor *descriptor = find_or_add_descriptor(set, binding->binding, element);
            descriptor->kind = binding->type;
            descriptor->image.sampler = binding->samplers[element];
        }
    }
}

static Result layer_vkAllocateDescriptorSets(Handle device, const SetAllocateInfo *info, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkAllocateDescriptorSets, (Handle, const SetAllocateInfo *, uint64_t *))(device, info, created);
    LOCK;
    for (uint32_t i = 0; result == SUCCESS && i < info->count; i++) {
        /* The set of a reused handle was freed by the program. */
        DescriptorSet *set = find_object(DESCRIPTOR_SETS, created[i]);
        if (set) free(set->descriptors);
        else set = store_object(DESCRIPTOR_SETS, created[i], allocate(sizeof *set));
        *set = (DescriptorSet){ .layout = find_object(LAYOUTS, info->layouts[i]), .updates = set->updates + 1 };
        add_immutable_samplers(set);
    }
    UNLOCK;
    return result;
}

static void write_descriptor(DescriptorSet *set, uint32_t binding, uint32_t element, int32_t kind, const void *data) {
    set->updates++;
    Descriptor *descriptor = find_or_add_descriptor(set, binding, element);
    uint64_t immutable_sampler = descriptor->image.sampler;
    descriptor->kind = kind;
    if (kind <= STORAGE_IMAGE || kind == INPUT_ATTACHMENT) descriptor->image = *(const ImageDescriptor *)data;
    if (kind <= STORAGE_IMAGE && find_binding(set->layout, binding) && find_binding(set->layout, binding)->samplers) descriptor->image.sampler = immutable_sampler;
    if (kind == UNIFORM_TEXELS || kind == STORAGE_TEXELS) descriptor->texels = *(const uint64_t *)data;
    if (kind >= UNIFORM_BUFFER && kind <= STORAGE_BUFFER_DYNAMIC) descriptor->buffer = *(const BufferDescriptor *)data;
}

/* Writes bytes of an inline uniform block. Its elements are bytes. */
static void write_block(DescriptorSet *set, uint32_t binding, uint32_t offset, uint32_t size, const void *data) {
    Descriptor *descriptor = find_or_add_descriptor(set, binding, 0);
    set->updates++;
    descriptor->kind = INLINE_UNIFORM_BLOCK;
    if (offset + (size_t)size > descriptor->block.size) {
        unsigned char *old = descriptor->block.data;
        descriptor->block.data = allocate(offset + (size_t)size);
        if (old) memcpy(descriptor->block.data, old, descriptor->block.size);
        descriptor->block.size = offset + (size_t)size;
        free(old);
    }
    memcpy(descriptor->block.data + offset, data, size);
}

static void write_descriptors(DescriptorSet *set, const DescriptorWrite *write) {
    if (!set) return;
    if (write->kind == INLINE_UNIFORM_BLOCK) {
        for (const Header *at = write->next; at; at = at->next)
            if (at->type == INLINE_UNIFORM_WRITE) write_block(set, write->binding, write->element, ((const InlineWrite *)at)->size, ((const InlineWrite *)at)->data);
        return;
    }
    for (uint32_t j = 0; j < write->count; j++) {
        const void *data = write->kind <= STORAGE_IMAGE || write->kind == INPUT_ATTACHMENT ? (const void *)&write->images[j]
            : write->kind == UNIFORM_TEXELS || write->kind == STORAGE_TEXELS ? (const void *)&write->texels[j]
            : write->kind >= UNIFORM_BUFFER && write->kind <= STORAGE_BUFFER_DYNAMIC ? (const void *)&write->buffers[j] : NULL;
        write_descriptor(set, write->binding, write->element + j, write->kind, data);
    }
}

static void layer_vkUpdateDescriptorSets(Handle device, uint32_t count, const DescriptorWrite *writes, uint32_t copy_count, const DescriptorCopy *copies) {
    CALL_NEXT(device, void, vkUpdateDescriptorSets, (Handle, uint32_t, const DescriptorWrite *, uint32_t, const DescriptorCopy *))(
        device, count, writes, copy_count, copies);
    LOCK;
    for (uint32_t i = 0; i < count; i++) write_descriptors(find_object(DESCRIPTOR_SETS, writes[i].set), &writes[i]);
    for (uint32_t i = 0; i < copy_count; i++) {
        DescriptorSet *from = find_object(DESCRIPTOR_SETS, copies[i].from), *to = find_object(DESCRIPTOR_SETS, copies[i].to);
        if (from && to) to->is_cut = to->is_cut || from->is_cut, to->updates++;
        for (uint32_t j = 0; from && to && j < copies[i].count; j++) {
            Descriptor source = *find_or_add_descriptor(from, copies[i].from_binding, copies[i].from_element + j);
            if (source.kind == INLINE_UNIFORM_BLOCK) {
                if (copies[i].from_element + (size_t)copies[i].count <= source.block.size)
                    write_block(to, copies[i].to_binding, copies[i].to_element, copies[i].count, source.block.data + copies[i].from_element);
                break;
            }
            Descriptor *target = find_or_add_descriptor(to, copies[i].to_binding, copies[i].to_element + j);
            source.binding = target->binding;
            source.element = target->element;
            *target = source;
        }
    }
    UNLOCK;
}

#define TEMPLATE_CREATION(name) \
    static Result layer_##name(Handle device, const TemplateInfo *info, const void *allocator, uint64_t *created) { \
        Result result = CALL_NEXT(device, Result, name, (Handle, const TemplateInfo *, const void *, uint64_t *))(device, info, allocator, created); \
        LOCK; \
        if (result == SUCCESS) { \
            Template *stored = store_object(TEMPLATES, *created, allocate(sizeof *stored)); \
            *stored = (Template){ info->count, info->point, duplicate(info->entries, info->count * sizeof *info->entries) }; \
        } \
        UNLOCK; \
        return result; \
    }
TEMPLATE_CREATION(vkCreateDescriptorUpdateTemplate)
TEMPLATE_CREATION(vkCreateDescriptorUpdateTemplateKHR)

static void write_template(DescriptorSet *set, uint64_t handle, const void *data) {
    const Template *stored = find_object(TEMPLATES, handle);
    for (uint32_t i = 0; set && stored && i < stored->count; i++) {
        const TemplateEntry *entry = &stored->entries[i];
        const char *from = (const char *)data + entry->offset;
        if (entry->kind == INLINE_UNIFORM_BLOCK) write_block(set, entry->binding, entry->element, entry->count, from);
        for (uint32_t j = 0; entry->kind != INLINE_UNIFORM_BLOCK && j < entry->count; j++)
            write_descriptor(set, entry->binding, entry->element + j, entry->kind, from + j * entry->stride);
    }
}

#define TEMPLATE_UPDATE(name) \
    static void layer_##name(Handle device, uint64_t set, uint64_t from, const void *data) { \
        CALL_NEXT(device, void, name, (Handle, uint64_t, uint64_t, const void *))(device, set, from, data); \
        LOCK; \
        write_template(find_object(DESCRIPTOR_SETS, set), from, data); \
        UNLOCK; \
    }
TEMPLATE_UPDATE(vkUpdateDescriptorSetWithTemplate)
TEMPLATE_UPDATE(vkUpdateDescriptorSetWithTemplateKHR)

#define PIPELINE_FUNCTIONS \
    LAYER_FUNCTION(vkCreateShaderModule) LAYER_FUNCTION(vkCreateComputePipelines) LAYER_FUNCTION(vkCreateGraphicsPipelines) \
    LAYER_FUNCTION(vkCreatePipelineLayout) LAYER_FUNCTION(vkCreateDescriptorSetLayout) LAYER_FUNCTION(vkAllocateDescriptorSets) \
    LAYER_FUNCTION(vkUpdateDescriptorSets) LAYER_FUNCTION(vkCreateDescriptorUpdateTemplate) LAYER_FUNCTION(vkCreateDescriptorUpdateTemplateKHR) \
    LAYER_FUNCTION(vkUpdateDescriptorSetWithTemplate) LAYER_FUNCTION(vkUpdateDescriptorSetWithTemplateKHR)
