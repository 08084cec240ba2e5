/* Draws and render passes.
 *
 * What the shaders of a draw access is not computed: its descriptors are possible accesses, from which the reader removes those that no
 * shader can make. Indices, and the attributes of the first vertex, are accesses; other vertices are possible ones. Load operations are
 * accesses of the command that begins the first subpass with the attachment, and store operations of the one that ends the last. The
 * attachments of a subpass are listed at its begin, and each draw has the state that decides which of them it may access. The layout
 * transitions of a render pass are barriers between the scopes of its dependencies. */

enum { STAGE_VERTEX_INPUT = 4, STAGE_VERTEX = 8, STAGE_EARLY_TESTS = 0x100, STAGE_LATE_TESTS = 0x200, STAGE_COLOUR = 0x400, STAGE_COMPUTE = 0x800 };
enum { INDEX_READ = 2, VERTEX_READ = 4, COLOUR_READ = 0x80, COLOUR_WRITE = 0x100, DEPTH_READ = 0x200, DEPTH_WRITE = 0x400 };
enum { MULTIVIEW = 1000053000, LOAD = 0, STORE_NONE = 1000301000, LOAD_NONE = 1000400000 };

typedef struct RenderPass {
    uint32_t attachment_count, subpass_count, dependency_count;
    bool has_views; /* Each subpass may access other layers. */
    Attachment *attachments;
    Layouts *before, *after; /* Of each attachment outside of the pass. */
    Layouts *layouts;        /* Of each attachment in each subpass. */
    struct SubpassOutputs {
        uint32_t colours[MAX_OUTPUTS], depth;
    } *outputs; /* The attachments of each subpass that draws may access. */
    struct { uint32_t from, to; MemoryBarrier2 barrier; } *dependencies;
} RenderPass;

enum { UNUSED = -1, EXTERNAL = ~0 };

typedef struct Framebuffer {
    uint32_t count, layers;
    uint64_t *views;
} Framebuffer;

/* Stores the layouts of the attachments that references name. */
static void record_layouts(Layouts *layouts, uint32_t attachment_count, const void *references, uint32_t count, bool is_second) {
    enum { STENCIL_LAYOUT = 1000241001 };
    size_t header = is_second ? sizeof(Header) : 0, stride = is_second ? 2 * sizeof(Header) : sizeof(AttachmentReference);
    for (uint32_t i = 0; references && i < count; i++) {
        AttachmentReference reference;
        const char *at = (const char *)references + i * stride;
        memcpy(&reference, at + header, sizeof reference);
        if (reference.attachment >= attachment_count) continue;
        layouts[reference.attachment] = (Layouts){ reference.layout, reference.layout };
        for (const Header *next = is_second ? ((const Header *)at)->next : NULL; next; next = next->next)
            if (next->type == STENCIL_LAYOUT) layouts[reference.attachment].stencil = ((const StencilLayout *)next)->layout;
    }
}

static uint32_t referenced_attachment(const void *references, uint32_t index, uint32_t count, bool is_second) {
    AttachmentReference reference;
    if (!references || index >= count) return UNUSED;
    memcpy(&reference, (const char *)references + index * (is_second ? 2 * sizeof(Header) : sizeof reference) + (is_second ? sizeof(Header) : 0), sizeof reference);
    return reference.attachment;
}

static void record_subpass(Layouts *layouts, struct SubpassOutputs *outputs, uint32_t attachment_count, const void *info, bool is_second) {
    const SubpassInfo2 *second = info;
    SubpassInfo subpass = is_second ? (SubpassInfo){ 0, 0, second->input_count, second->inputs, second->colour_count, second->colours, second->resolves, second->depth, 0, NULL }
                                    : *(const SubpassInfo *)info;
    for (uint32_t i = 0; i < attachment_count; i++) layouts[i] = (Layouts){ UNUSED, UNUSED };
    record_layouts(layouts, attachment_count, subpass.inputs, subpass.input_count, is_second);
    record_layouts(layouts, attachment_count, subpass.colours, subpass.colour_count, is_second);
    record_layouts(layouts, attachment_count, subpass.resolves, subpass.colour_count, is_second);
    record_layouts(layouts, attachment_count, subpass.depth, 1, is_second);
    for (uint32_t i = 0; i < MAX_OUTPUTS; i++) outputs->colours[i] = referenced_attachment(subpass.colours, i, subpass.colour_count, is_second);
    outputs->depth = referenced_attachment(subpass.depth, 0, 1, is_second);
    enum { DEPTH_RESOLVE = 1000199001, SHADING_RATE = 1000226000 };
    for (const Header *at = is_second ? second->next : NULL; at; at = at->next) {
        if (at->type == DEPTH_RESOLVE) record_layouts(layouts, attachment_count, ((const DepthResolve *)at)->attachment, 1, true);
        if (at->type == SHADING_RATE) record_layouts(layouts, attachment_count, ((const ShadingRate *)at)->attachment, 1, true);
    }
}

/* `stride` and `offset` are those of the elements that both versions of the structure share. */
static void record_render_pass(uint64_t handle, const RenderPassInfo *info, bool is_second) {
    RenderPass *pass = store_object(RENDER_PASSES, handle, allocate(sizeof *pass));
    size_t header = is_second ? sizeof(Header) : 0;
    size_t attachment_stride = is_second ? (header + sizeof(Attachment) + 7) / 8 * 8 : sizeof(Attachment);
    size_t dependency_stride = is_second ? header + sizeof(SubpassDependency) + sizeof(int32_t) : sizeof(SubpassDependency);
    pass->attachment_count = info->attachment_count;
    pass->attachments = allocate(info->attachment_count * sizeof *pass->attachments);
    pass->before = allocate(info->attachment_count * sizeof *pass->before);
    pass->after = allocate(info->attachment_count * sizeof *pass->after);
    for (uint32_t i = 0; i < info->attachment_count; i++) {
        enum { STENCIL_LAYOUTS = 1000241002 };
        const char *at = (const char *)info->attachments + i * attachment_stride;
        memcpy(&pass->attachments[i], at + header, sizeof *pass->attachments);
        pass->before[i] = (Layouts){ pass->attachments[i].from_layout, pass->attachments[i].from_layout };
        pass->after[i] = (Layouts){ pass->attachments[i].to_layout, pass->attachments[i].to_layout };
        for (const Header *next = is_second ? ((const Header *)at)->next : NULL; next; next = next->next)
            if (next->type == STENCIL_LAYOUTS) {
                pass->before[i].stencil = ((const StencilLayout *)next)->layout;
                pass->after[i].stencil = ((const StencilLayout *)next)->final_layout;
            }
    }
    pass->subpass_count = info->subpass_count;
    for (const Header *at = info->next; at; at = at->next) pass->has_views = pass->has_views || at->type == MULTIVIEW;
    for (uint32_t i = 0; is_second && i < info->subpass_count; i++) pass->has_views = pass->has_views || ((const SubpassInfo2 *)info->subpasses)[i].view_mask;
    pass->layouts = allocate(info->subpass_count * info->attachment_count * sizeof *pass->layouts);
    pass->outputs = allocate(info->subpass_count * sizeof *pass->outputs);
    for (uint32_t i = 0; i < info->subpass_count; i++)
        record_subpass(pass->layouts + i * info->attachment_count, &pass->outputs[i], info->attachment_count,
                       (const char *)info->subpasses + i * (is_second ? sizeof(SubpassInfo2) : sizeof(SubpassInfo)), is_second);
    pass->dependency_count = info->dependency_count;
    pass->dependencies = allocate(info->dependency_count * sizeof *pass->dependencies);
    for (uint32_t i = 0; i < info->dependency_count; i++) {
        const char *at = (const char *)info->dependencies + i * dependency_stride;
        SubpassDependency dependency;
        memcpy(&dependency, at + header, sizeof dependency);
        pass->dependencies[i].from = dependency.from;
        pass->dependencies[i].to = dependency.to;
        pass->dependencies[i].barrier = (MemoryBarrier2){ 0, NULL, dependency.from_stages, dependency.from_accesses, dependency.to_stages, dependency.to_accesses };
        for (const Header *next = is_second ? ((const Header *)at)->next : NULL; next; next = next->next)
            if (next->type == MEMORY_BARRIER2) pass->dependencies[i].barrier = *(const MemoryBarrier2 *)next;
    }
}

#define RENDER_PASS_CREATION(name, is_second) \
    static Result layer_##name(Handle device, const RenderPassInfo *info, const void *allocator, uint64_t *created) { \
        Result result = CALL_NEXT(device, Result, name, (Handle, const RenderPassInfo *, const void *, uint64_t *))(device, info, allocator, created); \
        LOCK; \
        if (result == SUCCESS) record_render_pass(*created, info, is_second); \
        UNLOCK; \
        return result; \
    }
RENDER_PASS_CREATION(vkCreateRenderPass, false)
RENDER_PASS_CREATION(vkCreateRenderPass2, true)
RENDER_PASS_CREATION(vkCreateRenderPass2KHR, true)

static Result layer_vkCreateFramebuffer(Handle device, const FramebufferInfo *info, const void *allocator, uint64_t *created) {
    enum { IMAGELESS = 1 };
    Result result = CALL_NEXT(device, Result, vkCreateFramebuffer, (Handle, const FramebufferInfo *, const void *, uint64_t *))(
        device, info, allocator, created);
    if (result != SUCCESS) return result;
    Framebuffer *framebuffer = allocate(sizeof *framebuffer);
    framebuffer->layers = info->layers;
    if (!(info->flags & IMAGELESS)) *framebuffer = (Framebuffer){ info->count, info->layers, duplicate(info->views, info->count * sizeof *info->views) };
    LOCK;
    store_object(FRAMEBUFFERS, *created, framebuffer);
    UNLOCK;
    return result;
}

enum { LOADS = 1, STORES = 2 };

/* The operations of an attachment with one aspect, or with all of an image without depth and stencil (0). */
typedef struct AttachmentUse {
    uint32_t aspect;
    int32_t layout, load, store;
} AttachmentUse;

static bool is_read_only(int32_t layout, bool is_stencil) {
    /* DEPTH_STENCIL_READ_ONLY, READ_ONLY, the read-only layouts of one aspect, and those where the other aspect is an attachment. */
    return layout == 4 || layout == 1000314000 || layout == (is_stencil ? 1000241003 : 1000241001) || layout == (is_stencil ? 1000117001 : 1000117000);
}

/* Returns the parts of a view that a render pass accesses. */
static SubresourceRange attachment_range(const Commands *commands, const ViewInfo *view) {
    SubresourceRange range = view->range;
    if (commands->layers && range.layers > commands->layers) range.layers = commands->layers;
    return range;
}

static void add_attachment(Text *text, uint64_t handle, AttachmentUse use, const Commands *commands, int operations) {
    const RenderArea *area = &commands->area;
    const ViewInfo *view = find_object(VIEWS, handle);
    const Image *image = view ? find_object(IMAGES, view->image) : NULL;
    if (!image) return;
    TexelBox box = { { area->x, area->y, 0 }, { (int64_t)area->x + area->width, (int64_t)area->y + area->height, INT32_MAX } };
    bool is_depth = depth_aspects(image->info.format) != 0;
    SubresourceRange range = attachment_range(commands, view);
    if (use.aspect && !(depth_aspects(image->info.format) & use.aspect)) return;
    if (use.aspect) range.aspect = use.aspect;
    int32_t layout = use.layout, load = use.load, store = use.store;
    uint64_t read = is_depth ? DEPTH_READ : COLOUR_READ, write = is_depth ? DEPTH_WRITE : COLOUR_WRITE;
    uint64_t early = is_depth ? STAGE_EARLY_TESTS : STAGE_COLOUR, late = is_depth ? STAGE_LATE_TESTS : STAGE_COLOUR;
    access_origin = ",\"is_operation\":true";
    if (operations & LOADS && load == LOAD) add_image_access(text, view->image, range, layout, &box, early, read, 0);
    else if (operations & LOADS && load != LOAD_NONE) add_image_access(text, view->image, range, layout, &box, early, write, WRITES);
    /* Nothing is written to a read-only attachment that is loaded. */
    bool is_unchanged = is_depth && load == LOAD && is_read_only(layout, use.aspect == STENCIL_ASPECT);
    if (operations & STORES && store != STORE_NONE)
        add_image_access(text, view->image, range, layout, &box, late, write, WRITES | (is_unchanged ? POSSIBLE : 0));
    access_origin = "";
}

/* Adds operations of an attachment of a render pass, for each of its aspects. */
static void add_pass_attachment(Text *text, uint64_t handle, Layouts layouts, const Attachment *at, const Commands *commands, int operations) {
    bool is_depth = depth_aspects(at->format) != 0;
    add_attachment(text, handle, (AttachmentUse){ is_depth ? DEPTH_ASPECT : 0, layouts.main, at->load, at->store }, commands, operations);
    if (is_depth) add_attachment(text, handle, (AttachmentUse){ STENCIL_ASPECT, layouts.stencil, at->stencil_load, at->stencil_store }, commands, operations);
}

/* Adds an access of draws to an attachment that none of them has to make. */
static void add_output(Text *text, uint64_t handle, uint32_t aspect, int32_t layout, const Commands *commands, uint64_t stage, uint64_t access, int kind) {
    const RenderArea *area = &commands->area;
    const ViewInfo *view = find_object(VIEWS, handle);
    const Image *image = view ? find_object(IMAGES, view->image) : NULL;
    if (!image || (aspect && !(depth_aspects(image->info.format) & aspect))) return;
    TexelBox box = { { area->x, area->y, 0 }, { (int64_t)area->x + area->width, (int64_t)area->y + area->height, INT32_MAX } };
    SubresourceRange range = attachment_range(commands, view);
    if (aspect) range.aspect = aspect;
    add_image_access(text, view->image, range, layout, &box, stage, access, kind | POSSIBLE);
}

/* Appends the begin of a subpass, or of a render pass without subpasses, with what its draws may access. */
static void add_subpass_begin(Commands *commands, uint32_t number, bool is_dynamic) {
    const Outputs *outputs = &commands->outputs;
    Text *text = &commands->list;
    ADD_COMMAND(commands, "{\"op\":\"subpass\",\"number\":%u,\"is_dynamic\":%s,\"outputs\":[", number, is_dynamic ? "true" : "false");
    for (uint32_t i = 0; i < MAX_OUTPUTS; i++) {
        char origin[64];
        snprintf(origin, sizeof origin, ",\"location\":%u", i);
        access_origin = origin;
        add_output(text, outputs->colours[i].view, 0, outputs->colours[i].layout, commands, STAGE_COLOUR, COLOUR_READ, 0);
        add_output(text, outputs->colours[i].view, 0, outputs->colours[i].layout, commands, STAGE_COLOUR, COLOUR_WRITE, WRITES);
        access_origin = "";
    }
    for (int is_stencil = 0; is_stencil < 2; is_stencil++) {
        int32_t layout = is_stencil ? outputs->depth_layouts.stencil : outputs->depth_layouts.main;
        uint32_t aspect = is_stencil ? STENCIL_ASPECT : DEPTH_ASPECT;
        add_output(text, outputs->depth, aspect, layout, commands, STAGE_EARLY_TESTS, DEPTH_READ, 0);
        if (!is_read_only(layout, is_stencil)) add_output(text, outputs->depth, aspect, layout, commands, STAGE_LATE_TESTS, DEPTH_WRITE, WRITES);
    }
    append(text, "]}");
    commands->is_in_pass = true;
}

/* Appends the end of a render pass. */
static void add_pass_end(Commands *commands) {
    ADD_COMMAND(commands, "{\"op\":\"subpass\",\"number\":null,\"is_dynamic\":false,\"outputs\":[]}");
    memset(&commands->outputs, 0, sizeof commands->outputs);
    commands->is_in_pass = false;
}

/* Appends the clears of attachments of the subpass. They are ordered as draws are. */
static void layer_vkCmdClearAttachments(Handle handle, uint32_t count, const ClearAttachment *clears, uint32_t rectangle_count, const ClearRectangle *rectangles) {
    CALL_NEXT(handle, void, vkCmdClearAttachments, (Handle, uint32_t, const ClearAttachment *, uint32_t, const ClearRectangle *))(
        handle, count, clears, rectangle_count, rectangles);
    LOCK;
    Commands *commands = find_commands(handle);
    if (commands)
        begin_command(commands, "vkCmdClearAttachments", commands->is_in_pass ? "" : UNKNOWN_ACCESSES("clears of attachments in secondary command buffers are not recorded"));
    for (uint32_t i = 0; commands && i < count * rectangle_count; i++) {
        const ClearAttachment *clear = &clears[i / rectangle_count];
        const ClearRectangle *rectangle = &rectangles[i % rectangle_count];
        const Outputs *outputs = &commands->outputs;
        bool is_colour = clear->aspects & 1;
        if (is_colour && clear->location >= MAX_OUTPUTS) continue;
        uint64_t handle_of_view = is_colour ? outputs->colours[clear->location].view : outputs->depth;
        const ViewInfo *view = find_object(VIEWS, handle_of_view);
        const Image *image = view ? find_object(IMAGES, view->image) : NULL;
        if (!image) continue;
        const RenderArea *area = &rectangle->area;
        TexelBox box = { { area->x, area->y, 0 }, { (int64_t)area->x + area->width, (int64_t)area->y + area->height, INT32_MAX } };
        for (uint32_t aspect = 1; aspect <= STENCIL_ASPECT; aspect <<= 1) {
            SubresourceRange range = view->range;
            if (!(clear->aspects & aspect) || (!is_colour && !(depth_aspects(image->info.format) & aspect))) continue;
            range.layer += rectangle->layer, range.layers = rectangle->layers;
            if (!is_colour) range.aspect = aspect;
            int32_t layout = is_colour ? outputs->colours[clear->location].layout : aspect == STENCIL_ASPECT ? outputs->depth_layouts.stencil : outputs->depth_layouts.main;
            add_image_access(&commands->list, view->image, range, layout, &box, is_colour ? STAGE_COLOUR : STAGE_LATE_TESTS, is_colour ? COLOUR_WRITE : DEPTH_WRITE, WRITES);
        }
    }
    if (commands) end_command(commands);
    UNLOCK;
}

/* Appends the layout transition of an attachment between two subpasses, or from or to the outside of the pass. It follows the first scopes
 * of the dependencies between them and precedes their second scopes. Without any, there is one from or to nothing (VkSubpassDependency). */
static void add_pass_transition(Commands *commands, uint32_t attachment, uint32_t from, uint32_t to, Layouts old, Layouts new) {
    enum { TOP = 1, BOTTOM = 0x2000, ALL_ATTACHMENTS = INPUT_READ | COLOUR_READ | COLOUR_WRITE | DEPTH_READ | DEPTH_WRITE };
    const RenderPass *pass = commands->pass;
    const ViewInfo *view = find_object(VIEWS, commands->attachments[attachment]);
    if (!view) return;
    MemoryBarrier2 scopes = { 0 };
    bool has_dependency = false;
    for (uint32_t i = 0; i < pass->dependency_count; i++) {
        if (pass->dependencies[i].from != from || pass->dependencies[i].to != to) continue;
        has_dependency = true;
        scopes.from_stages |= pass->dependencies[i].barrier.from_stages;
        scopes.from |= pass->dependencies[i].barrier.from;
        scopes.to_stages |= pass->dependencies[i].barrier.to_stages;
        scopes.to |= pass->dependencies[i].barrier.to;
    }
    if (!has_dependency && from == (uint32_t)EXTERNAL) scopes = (MemoryBarrier2){ 0, NULL, TOP, 0, STAGE_ALL, ALL_ATTACHMENTS };
    else if (!has_dependency && to == (uint32_t)EXTERNAL) scopes = (MemoryBarrier2){ 0, NULL, STAGE_ALL, ALL_ATTACHMENTS, BOTTOM, 0 };
    uint32_t all = depth_aspects(pass->attachments[attachment].format);
    bool has_stencil = all & STENCIL_ASPECT && (old.main != old.stencil || new.main != new.stencil);
    for (int is_stencil = 0; is_stencil <= has_stencil; is_stencil++) {
        uint32_t aspects = !all ? view->range.aspect : !has_stencil ? all : is_stencil ? STENCIL_ASPECT : all & DEPTH_ASPECT;
        int32_t old_layout = is_stencil ? old.stencil : old.main, new_layout = is_stencil ? new.stencil : new.main;
        char resource[256];
        if (!aspects || old_layout == new_layout) continue;
        snprintf(resource, sizeof resource,
                 ",\"image\":%" PRIu64 ",\"range\":[%u,%u,%u,%u],\"aspects\":%u,\"layouts\":[%d,%d],\"subpasses\":{\"from\":%u,\"to\":%u,\"is_declared\":%s}",
                 image_id(view->image), view->range.level, view->range.levels, view->range.layer, view->range.layers, aspects, old_layout, new_layout, from, to,
                 has_dependency ? "true" : "false");
        add_barrier(commands, scopes, resource);
    }
}

/* Appends the transitions into the layouts of a subpass, or at the end of the pass into the final ones. */
static void add_pass_transitions(Commands *commands, uint32_t subpass) {
    const RenderPass *pass = commands->pass;
    for (uint32_t i = 0; commands->attachments && i < pass->attachment_count; i++) {
        uint32_t last = EXTERNAL, end = subpass < pass->subpass_count ? subpass : pass->subpass_count;
        for (uint32_t earlier = 0; earlier < end; earlier++)
            if (pass->layouts[earlier * pass->attachment_count + i].main != UNUSED) last = earlier;
        bool is_first = last == (uint32_t)EXTERNAL, is_end = subpass == (uint32_t)EXTERNAL;
        Layouts layout = is_end ? pass->after[i] : pass->layouts[subpass * pass->attachment_count + i];
        Layouts before = is_first ? pass->before[i] : pass->layouts[last * pass->attachment_count + i];
        /* What no subpass uses has no transition. */
        if (layout.main != UNUSED && !(is_first && is_end)) add_pass_transition(commands, i, last, subpass, before, layout);
    }
}

/* Appends the dependencies and the transitions at the begin of a subpass, or at the end of the pass. */
static void add_subpass_dependencies(Commands *commands, bool is_end) {
    const RenderPass *pass = commands->pass;
    uint32_t to = is_end ? (uint32_t)EXTERNAL : commands->subpass;
    for (uint32_t i = 0; pass && i < pass->dependency_count; i++) {
        if (pass->dependencies[i].from == pass->dependencies[i].to || pass->dependencies[i].to != to) continue;
        char scopes[128];
        snprintf(scopes, sizeof scopes, ",\"subpasses\":{\"from\":%u,\"to\":%u,\"is_declared\":true}", pass->dependencies[i].from, to);
        add_barrier(commands, pass->dependencies[i].barrier, scopes);
    }
    if (pass) add_pass_transitions(commands, to);
}

/* Returns true if a subpass uses an attachment and no earlier one does, or for the store operations no later one. */
static bool is_at_end_of_uses(const RenderPass *pass, uint32_t attachment, uint32_t subpass, int operations) {
    uint32_t from = operations == LOADS ? 0 : subpass + 1, to = operations == LOADS ? subpass : pass->subpass_count;
    bool is_end = pass->layouts[subpass * pass->attachment_count + attachment].main != UNUSED;
    for (uint32_t i = from; i < to; i++) is_end = is_end && pass->layouts[i * pass->attachment_count + attachment].main == UNUSED;
    return is_end;
}

/* Appends a command with the load or the store operations of a subpass. Of stores, one without any is left out. */
static void add_operations(Commands *commands, const char *what, int operations) {
    const RenderPass *pass = commands->pass;
    Text accesses = { 0 };
    append(&accesses, "[");
    for (uint32_t i = 0; commands->attachments && i < pass->attachment_count; i++)
        if (is_at_end_of_uses(pass, i, commands->subpass, operations))
            add_pass_attachment(&accesses, commands->attachments[i], pass->layouts[commands->subpass * pass->attachment_count + i], &pass->attachments[i],
                                commands, operations);
    if (operations == LOADS || accesses.length > 1) {
        begin_command(commands, what, "");
        append(&commands->list, "%s", accesses.data + 1);
        end_command(commands);
    }
    free(accesses.data);
}

/* Appends the begin of a subpass: its dependencies, and the load operations of the attachments that no earlier one uses. */
static void begin_subpass(Commands *commands, const char *what) {
    const RenderPass *pass = commands->pass;
    if (!pass || commands->subpass >= pass->subpass_count) return;
    memset(&commands->outputs, 0, sizeof commands->outputs);
    const Layouts *layouts = pass->layouts + commands->subpass * pass->attachment_count;
    const struct SubpassOutputs *outputs = &pass->outputs[commands->subpass];
    for (uint32_t i = 0; commands->attachments && i < MAX_OUTPUTS; i++)
        if (outputs->colours[i] < pass->attachment_count) {
            commands->outputs.colours[i].view = commands->attachments[outputs->colours[i]];
            commands->outputs.colours[i].layout = layouts[outputs->colours[i]].main;
        }
    if (commands->attachments && outputs->depth < pass->attachment_count) {
        commands->outputs.depth = commands->attachments[outputs->depth];
        commands->outputs.depth_layouts = layouts[outputs->depth];
    }
    add_subpass_begin(commands, commands->subpass, false);
    add_subpass_dependencies(commands, false);
    add_operations(commands, what, LOADS);
}

static void next_subpass(Commands *commands, const char *what) {
    if (!commands->pass) return;
    add_operations(commands, "end of a subpass", STORES);
    commands->subpass++;
    begin_subpass(commands, what);
}

static void end_render_pass(Commands *commands, const char *what) {
    if (!commands->pass || commands->subpass >= commands->pass->subpass_count) return;
    add_operations(commands, what, STORES);
    add_subpass_dependencies(commands, true);
    add_pass_end(commands);
}

static void begin_render_pass(Handle handle, const char *what, const RenderPassBegin *info) {
    LOCK;
    Commands *commands = find_commands(handle);
    const RenderPass *pass = find_object(RENDER_PASSES, info->pass);
    const Framebuffer *framebuffer = find_object(FRAMEBUFFERS, info->framebuffer);
    if (commands && pass && framebuffer) {
        Framebuffer views = *framebuffer;
        for (const Header *at = info->next; at; at = at->next)
            if (at->type == ATTACHMENT_BEGIN_INFO) views = (Framebuffer){ ((const AttachmentBegin *)at)->count, 0, (uint64_t *)((const AttachmentBegin *)at)->views };
        commands->pass = pass;
        commands->subpass = 0;
        free(commands->attachments);
        commands->attachments = views.count >= pass->attachment_count ? duplicate(views.views, pass->attachment_count * sizeof *views.views) : NULL;
        commands->area = info->area;
        commands->layers = pass->has_views ? 0 : framebuffer->layers;
        begin_subpass(commands, what);
    }
    UNLOCK;
}

static void layer_vkCmdBeginRenderPass(Handle handle, const RenderPassBegin *info, int32_t contents) {
    CALL_NEXT(handle, void, vkCmdBeginRenderPass, (Handle, const RenderPassBegin *, int32_t))(handle, info, contents);
    begin_render_pass(handle, "vkCmdBeginRenderPass", info);
}

#define RENDER_PASS2(begin, next, end) \
    static void layer_##begin(Handle handle, const RenderPassBegin *info, const void *contents) { \
        CALL_NEXT(handle, void, begin, (Handle, const RenderPassBegin *, const void *))(handle, info, contents); \
        begin_render_pass(handle, #begin, info); \
    } \
    static void layer_##next(Handle handle, const void *begin_info, const void *end_info) { \
        CALL_NEXT(handle, void, next, (Handle, const void *, const void *))(handle, begin_info, end_info); \
        WITH_COMMANDS(next_subpass(commands, #next);); \
    } \
    static void layer_##end(Handle handle, const void *info) { \
        CALL_NEXT(handle, void, end, (Handle, const void *))(handle, info); \
        WITH_COMMANDS(end_render_pass(commands, #end);); \
    }
RENDER_PASS2(vkCmdBeginRenderPass2, vkCmdNextSubpass2, vkCmdEndRenderPass2)
RENDER_PASS2(vkCmdBeginRenderPass2KHR, vkCmdNextSubpass2KHR, vkCmdEndRenderPass2KHR)

static void layer_vkCmdNextSubpass(Handle handle, int32_t contents) {
    CALL_NEXT(handle, void, vkCmdNextSubpass, (Handle, int32_t))(handle, contents);
    WITH_COMMANDS(next_subpass(commands, "vkCmdNextSubpass"););
}

static void layer_vkCmdEndRenderPass(Handle handle) {
    CALL_NEXT(handle, void, vkCmdEndRenderPass, (Handle))(handle);
    WITH_COMMANDS(end_render_pass(commands, "vkCmdEndRenderPass"););
}

static void add_rendering_attachment(Commands *commands, const RenderingAttachment *at, uint32_t aspect) {
    if (!at || !at->view) return;
    Text *text = &commands->list;
    add_attachment(text, at->view, (AttachmentUse){ aspect, at->layout, at->load, at->store }, commands, LOADS | STORES);
    if (at->resolve_mode && at->resolve_view)
        add_attachment(text, at->resolve_view, (AttachmentUse){ aspect, at->resolve_layout, LOAD_NONE, 0 }, commands, LOADS | STORES);
}

/* A resumed part of a render pass has the load and store operations of the first part. */
static void begin_rendering(Commands *commands, const char *what, const RenderingInfo *info) {
    enum { SUSPENDING = 2, RESUMING = 4 };
    commands->is_suspended = info->flags & SUSPENDING;
    commands->pass = NULL;
    commands->area = info->area;
    commands->layers = info->view_mask ? 0 : info->layers;
    memset(&commands->outputs, 0, sizeof commands->outputs);
    for (uint32_t i = 0; i < info->count && i < MAX_OUTPUTS; i++) {
        commands->outputs.colours[i].view = info->colours[i].view;
        commands->outputs.colours[i].layout = info->colours[i].layout;
    }
    const RenderingAttachment *depth = info->depth && info->depth->view ? info->depth : info->stencil;
    commands->outputs.depth = depth ? depth->view : 0;
    if (depth) commands->outputs.depth_layouts = (Layouts){ depth->layout, info->stencil ? info->stencil->layout : depth->layout };
    commands->is_in_pass = true;
    if (info->flags & RESUMING) return;
    add_subpass_begin(commands, 0, true);
    begin_command(commands, what, "");
    for (uint32_t i = 0; i < info->count; i++) add_rendering_attachment(commands, &info->colours[i], 0);
    add_rendering_attachment(commands, info->depth, DEPTH_ASPECT);
    add_rendering_attachment(commands, info->stencil, STENCIL_ASPECT);
    end_command(commands);
}

#define RENDERING(begin, end) \
    static void layer_##begin(Handle handle, const RenderingInfo *info) { \
        CALL_NEXT(handle, void, begin, (Handle, const RenderingInfo *))(handle, info); \
        WITH_COMMANDS(begin_rendering(commands, #begin, info);); \
    } \
    static void layer_##end(Handle handle) { \
        CALL_NEXT(handle, void, end, (Handle))(handle); \
        WITH_COMMANDS(if (!commands->is_suspended) add_pass_end(commands);); \
    }
RENDERING(vkCmdBeginRendering, vkCmdEndRendering)
RENDERING(vkCmdBeginRenderingKHR, vkCmdEndRenderingKHR)

#define END_RENDERING2(name) \
    static void layer_##name(Handle handle, const void *info) { \
        CALL_NEXT(handle, void, name, (Handle, const void *))(handle, info); \
        WITH_COMMANDS(if (!commands->is_suspended) add_pass_end(commands);); \
    }
END_RENDERING2(vkCmdEndRendering2EXT)
END_RENDERING2(vkCmdEndRendering2KHR)

/* Vertices and indices. */

static void bind_vertices(Handle handle, uint32_t first, uint32_t count, const uint64_t *buffers, const uint64_t *offsets) {
    WITH_COMMANDS(for (uint32_t i = 0; i < count && first + i < MAX_VERTEX_BUFFERS; i++)
                      commands->vertices[first + i] = (BoundBuffer){ buffers[i], offsets[i] };);
}

static void layer_vkCmdBindVertexBuffers(Handle handle, uint32_t first, uint32_t count, const uint64_t *buffers, const uint64_t *offsets) {
    CALL_NEXT(handle, void, vkCmdBindVertexBuffers, (Handle, uint32_t, uint32_t, const uint64_t *, const uint64_t *))(handle, first, count, buffers, offsets);
    bind_vertices(handle, first, count, buffers, offsets);
}

#define BIND_VERTICES2(name) \
    static void layer_##name(Handle handle, uint32_t first, uint32_t count, const uint64_t *buffers, const uint64_t *offsets, const uint64_t *sizes, \
                             const uint64_t *strides) { \
        CALL_NEXT(handle, void, name, (Handle, uint32_t, uint32_t, const uint64_t *, const uint64_t *, const uint64_t *, const uint64_t *))( \
            handle, first, count, buffers, offsets, sizes, strides); \
        bind_vertices(handle, first, count, buffers, offsets); \
    }
BIND_VERTICES2(vkCmdBindVertexBuffers2)
BIND_VERTICES2(vkCmdBindVertexBuffers2EXT)

static void layer_vkCmdBindIndexBuffer(Handle handle, uint64_t buffer, uint64_t offset, int32_t type) {
    CALL_NEXT(handle, void, vkCmdBindIndexBuffer, (Handle, uint64_t, uint64_t, int32_t))(handle, buffer, offset, type);
    WITH_COMMANDS(commands->indices = (BoundBuffer){ buffer, offset }; commands->index_type = type;);
}

#define BIND_INDICES2(name) \
    static void layer_##name(Handle handle, uint64_t buffer, uint64_t offset, uint64_t size, int32_t type) { \
        CALL_NEXT(handle, void, name, (Handle, uint64_t, uint64_t, uint64_t, int32_t))(handle, buffer, offset, size, type); \
        WITH_COMMANDS(commands->indices = (BoundBuffer){ buffer, offset }; commands->index_type = type;); \
    }
BIND_INDICES2(vkCmdBindIndexBuffer2)
BIND_INDICES2(vkCmdBindIndexBuffer2KHR)

/* Draws. */

/* Pipeline stages by the bit of their shader stage. */
enum { SHADER_STAGES = 8 };
static const uint64_t PIPELINE_STAGES[SHADER_STAGES] = { 8, 0x10, 0x20, 0x40, 0x80, 0x800, 0x80000, 0x100000 };

/* Appends what a descriptor names as possible accesses of each stage that may use it. */
static void add_possible_accesses(Text *text, uint32_t stages, const Descriptor *descriptor, uint32_t dynamic) {
    for (unsigned bit = 0; bit < SHADER_STAGES; bit++) {
        if (!(stages >> bit & 1)) continue;
        uint64_t stage = PIPELINE_STAGES[bit];
        DescriptorUse use = descriptor_use(descriptor, dynamic);
        for (int is_write = 0; is_write <= use.may_write; is_write++) {
            uint64_t access = is_write ? SYNC_STORAGE_WRITE : use.reads;
            int kind = is_write ? POSSIBLE | WRITES : POSSIBLE;
            if (use.buffer) add_buffer_access(text, use.buffer, use.offset, use.size, stage, access, kind);
            else if (use.view) add_image_access(text, use.view->image, use.view->range, descriptor->image.layout, NULL, stage, access, kind);
        }
    }
}

/* What a draw names besides its descriptors. `counts` are those of vertices or indices and of instances, `firsts` their first ones; NULL if
 * the device decides. */
typedef struct Draw {
    bool has_indices;
    BoundBuffer indirect;
    uint64_t indirect_size;
    const uint32_t *counts, *firsts;
} Draw;

/* Appends the vertex attributes that a draw surely reads, if its vertex shader does. */
static void add_first_vertex(Commands *commands, const Pipeline *pipeline, const Draw *draw) {
    for (uint32_t i = 0; pipeline && i < pipeline->attribute_count; i++) {
        const VertexAttribute *attribute = &pipeline->attributes[i];
        const VertexBinding *binding = NULL;
        for (uint32_t j = 0; j < pipeline->binding_count; j++)
            if (pipeline->bindings[j].binding == attribute->binding) binding = &pipeline->bindings[j];
        /* Indices decide the vertices. */
        if (!binding || attribute->binding >= MAX_VERTEX_BUFFERS || (draw->has_indices && !binding->is_per_instance)) continue;
        const BoundBuffer *bound = &commands->vertices[attribute->binding];
        int format = find_format(attribute->format);
        uint64_t at = bound->offset + (uint64_t)draw->firsts[binding->is_per_instance ? 1 : 0] * binding->stride + attribute->offset;
        char origin[64];
        snprintf(origin, sizeof origin, ",\"location\":%u", attribute->location);
        access_origin = origin;
        if (bound->buffer)
            add_buffer_access(&commands->list, bound->buffer, at, format < 0 ? 1 : (uint64_t)(FORMATS[format].bits / 8 * FORMATS[format].components), STAGE_VERTEX_INPUT, VERTEX_READ, 0);
        access_origin = "";
    }
}

static bool uses_vertex_buffer(const Pipeline *pipeline, uint32_t binding) {
    bool is_used = !pipeline || !pipeline->stages || pipeline->has_dynamic_vertices;
    for (uint32_t i = 0; pipeline && i < pipeline->binding_count; i++) is_used = is_used || pipeline->bindings[i].binding == binding;
    return is_used;
}

static void add_vertex_accesses(Commands *commands, const Pipeline *pipeline, const Draw *draw) {
    Text *text = &commands->list;
    bool is_sure = draw->counts && draw->counts[0] && draw->counts[1] && !commands->is_conditional;
    if (is_sure) add_first_vertex(commands, pipeline, draw);
    for (uint32_t i = 0; i < MAX_VERTEX_BUFFERS; i++)
        if (commands->vertices[i].buffer && uses_vertex_buffer(pipeline, i))
            add_buffer_access(text, commands->vertices[i].buffer, commands->vertices[i].offset, WHOLE_SIZE, STAGE_VERTEX_INPUT, VERTEX_READ, POSSIBLE);
    if (draw->has_indices) {
        uint64_t bytes = commands->index_type == 0 ? 2 : commands->index_type == 1 ? 4 : 1, from = commands->indices.offset;
        if (is_sure) add_buffer_access(text, commands->indices.buffer, from + draw->firsts[0] * bytes, draw->counts[0] * bytes, STAGE_VERTEX_INPUT, INDEX_READ, 0);
        else add_buffer_access(text, commands->indices.buffer, from, WHOLE_SIZE, STAGE_VERTEX_INPUT, INDEX_READ, POSSIBLE);
    }
    if (draw->indirect.buffer)
        add_buffer_access(text, draw->indirect.buffer, draw->indirect.offset, draw->indirect_size, SYNC_INDIRECT_STAGE, SYNC_INDIRECT,
                          commands->is_conditional ? POSSIBLE : 0);
}

static void add_draw(Handle handle, const char *what, Draw draw) {
    LOCK;
    Commands *commands = find_commands(handle);
    if (commands) {
        const BindPoint *point = &commands->points[GRAPHICS_POINT];
        read_descriptor_buffers(commands, point);
        const Pipeline *pipeline = point->pipeline;
        const char *unknown = !pipeline || !pipeline->stages ? UNKNOWN_ACCESSES("its shaders are not recorded: shader objects or a pipeline of libraries") : NULL;
        uint32_t stages = pipeline && pipeline->stages ? pipeline->stages : 0x1f, set_count = pipeline ? pipeline->set_count : MAX_SETS;
        for (uint32_t number = 0; number < set_count; number++) {
            const DescriptorSet *set = bound_set(point, number);
            if (!unknown && set && set->is_unread) unknown = UNKNOWN_ACCESSES("its descriptor buffer is not mapped, or has bytes of copies");
            if (!unknown && set && set->is_cut) unknown = UNKNOWN_ACCESSES("arrays of this many descriptors are not recorded");
        }
        Text state = { 0 };
        if (!unknown) {
            uint64_t use = add_late_uses(commands, point, set_count);
            if (use) append(&state, ",\"late_use\":%" PRIu64, use);
            append(&state, ",\"shaders\":[");
            for (uint32_t i = 0; i < pipeline->shader_count; i++) {
                uint64_t stage = 0;
                for (unsigned bit = 0; bit < SHADER_STAGES; bit++)
                    if (pipeline->shaders[i].stage >> bit & 1) stage = PIPELINE_STAGES[bit];
                append(&state, "%s[%" PRIu64 ",\"%016" PRIx64 "\",", i ? "," : "", stage, pipeline->shaders[i].hash);
                append_string(&state, pipeline->shaders[i].entry);
                append(&state, ",");
                append_string(&state, pipeline->shaders[i].constants);
                append(&state, "]");
            }
            append(&state, "]");
            if (draw.counts && !draw.has_indices && !draw.firsts[0] && !draw.firsts[1] && !commands->is_conditional)
                append(&state, ",\"vertices\":[%u,%u]", draw.counts[0], draw.counts[1]);
            append(&state, ",\"outputs\":{\"writes\":%u,\"reads\":%u,\"has_tests\":%s,\"writes_tests\":%s,\"is_ordered\":%s}", pipeline->output_writes,
                   pipeline->output_reads, pipeline->has_tests ? "true" : "false", pipeline->writes_tests ? "true" : "false",
                   pipeline->has_ordered_inputs ? "true" : "false");
        } else append(&state, "%s", unknown);
        begin_command(commands, what, state.data);
        free(state.data);
        Text *text = &commands->list;
        for (uint32_t number = 0; number < set_count; number++) {
            const DescriptorSet *set = bound_set(point, number);
            for (uint32_t i = 0; set && i < set->count; i++) {
                const Descriptor *descriptor = &set->descriptors[i];
                const LayoutBinding *binding = find_binding(set->layout, descriptor->binding);
                char origin[64];
                snprintf(origin, sizeof origin, ",\"place\":[%u,%u]", number, descriptor->binding);
                access_origin = origin;
                if (descriptor->kind >= 0)
                    add_possible_accesses(text, binding ? stages & binding->stages : stages, descriptor, dynamic_offset(set, point->offsets[number], descriptor));
                access_origin = "";
            }
        }
        add_vertex_accesses(commands, pipeline, &draw);
        end_command(commands);
    }
    UNLOCK;
}

#define DRAW(name, has_indices, parameters, arguments, indirect_buffer, indirect_offset, indirect_size) \
    static void layer_##name parameters { \
        CALL_NEXT(handle, void, name, parameters) arguments; \
        add_draw(handle, #name, (Draw){ has_indices, { indirect_buffer, indirect_offset }, indirect_size, NULL, NULL }); \
    }
static void layer_vkCmdDraw(Handle handle, uint32_t vertices, uint32_t instances, uint32_t first, uint32_t first_instance) {
    CALL_NEXT(handle, void, vkCmdDraw, (Handle, uint32_t, uint32_t, uint32_t, uint32_t))(handle, vertices, instances, first, first_instance);
    add_draw(handle, "vkCmdDraw", (Draw){ .counts = (uint32_t[2]){ vertices, instances }, .firsts = (uint32_t[2]){ first, first_instance } });
}

static void layer_vkCmdDrawIndexed(Handle handle, uint32_t indices, uint32_t instances, uint32_t first, int32_t offset, uint32_t first_instance) {
    CALL_NEXT(handle, void, vkCmdDrawIndexed, (Handle, uint32_t, uint32_t, uint32_t, int32_t, uint32_t))(
        handle, indices, instances, first, offset, first_instance);
    add_draw(handle, "vkCmdDrawIndexed",
             (Draw){ .has_indices = true, .counts = (uint32_t[2]){ indices, instances }, .firsts = (uint32_t[2]){ first, first_instance } });
}

DRAW(vkCmdDrawIndirect, false, (Handle handle, uint64_t a, uint64_t b, uint32_t c, uint32_t d), (handle, a, b, c, d), a, b, c ? 16 : 0)
DRAW(vkCmdDrawIndexedIndirect, true, (Handle handle, uint64_t a, uint64_t b, uint32_t c, uint32_t d), (handle, a, b, c, d), a, b, c ? 20 : 0)
#define DRAW_COUNT(name, has_indices) \
    DRAW(name, has_indices, (Handle handle, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint32_t e, uint32_t f), (handle, a, b, c, d, e, f), c, d, 4)
DRAW_COUNT(vkCmdDrawIndirectCount, false)
DRAW_COUNT(vkCmdDrawIndirectCountKHR, false)
DRAW_COUNT(vkCmdDrawIndexedIndirectCount, true)
DRAW_COUNT(vkCmdDrawIndexedIndirectCountKHR, true)
DRAW_COUNT(vkCmdDrawIndirectCountAMD, false)
DRAW_COUNT(vkCmdDrawIndexedIndirectCountAMD, true)
DRAW(vkCmdDrawMeshTasksEXT, false, (Handle handle, uint32_t a, uint32_t b, uint32_t c), (handle, a, b, c), 0, 0, 0)
DRAW(vkCmdDrawMeshTasksIndirectEXT, false, (Handle handle, uint64_t a, uint64_t b, uint32_t c, uint32_t d), (handle, a, b, c, d), a, b, c ? 12 : 0)

/* Commands whose accesses are not known at all. */
#define UNKNOWN_COMMANDS(X) \
    X(vkCmdTraceRaysKHR, (Handle handle, const void *a, const void *b, const void *c, const void *d, uint32_t e, uint32_t f, uint32_t g), (handle, a, b, c, d, e, f, g)) \
    X(vkCmdTraceRaysIndirectKHR, (Handle handle, const void *a, const void *b, const void *c, const void *d, uint64_t e), (handle, a, b, c, d, e)) \
    X(vkCmdTraceRaysIndirect2KHR, (Handle handle, uint64_t a), (handle, a)) \
    X(vkCmdBuildAccelerationStructuresKHR, (Handle handle, uint32_t a, const void *b, const void *c), (handle, a, b, c)) \
    X(vkCmdBuildAccelerationStructuresIndirectKHR, (Handle handle, uint32_t a, const void *b, const void *c, const void *d, const void *e), (handle, a, b, c, d, e)) \
    X(vkCmdCopyAccelerationStructureKHR, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdExecuteGeneratedCommandsEXT, (Handle handle, uint32_t a, const void *b), (handle, a, b)) \
    X(vkCmdExecuteGeneratedCommandsNV, (Handle handle, uint32_t a, const void *b), (handle, a, b)) \
    X(vkCmdDrawIndirectByteCountEXT, (Handle handle, uint32_t a, uint32_t b, uint64_t c, uint64_t d, uint32_t e, uint32_t f), (handle, a, b, c, d, e, f)) \
    X(vkCmdDrawMeshTasksIndirectCountEXT, (Handle handle, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint32_t e, uint32_t f), (handle, a, b, c, d, e, f)) \
    X(vkCmdDrawMultiEXT, (Handle handle, uint32_t a, const void *b, uint32_t c, uint32_t d, uint32_t e), (handle, a, b, c, d, e)) \
    X(vkCmdDrawMultiIndexedEXT, (Handle handle, uint32_t a, const void *b, uint32_t c, uint32_t d, uint32_t e, const void *f), (handle, a, b, c, d, e, f)) \
    X(vkCmdBeginTransformFeedbackEXT, (Handle handle, uint32_t a, uint32_t b, const void *c, const void *d), (handle, a, b, c, d)) \
    X(vkCmdEndTransformFeedbackEXT, (Handle handle, uint32_t a, uint32_t b, const void *c, const void *d), (handle, a, b, c, d)) \
    X(vkCmdUpdatePipelineIndirectBufferNV, (Handle handle, int32_t a, uint64_t b), (handle, a, b)) \
    X(vkCmdCopyAccelerationStructureToMemoryKHR, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdCopyMemoryToAccelerationStructureKHR, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdBuildMicromapsEXT, (Handle handle, uint32_t a, const void *b), (handle, a, b)) \
    X(vkCmdCopyMicromapEXT, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdCopyMicromapToMemoryEXT, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdCopyMemoryToMicromapEXT, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdDecodeVideoKHR, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdEncodeVideoKHR, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdOpticalFlowExecuteNV, (Handle handle, uint64_t a, const void *b), (handle, a, b)) \
    X(vkCmdTraceRaysNV, (Handle handle, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h, uint64_t i, uint64_t j, uint64_t k, uint32_t l, uint32_t m, uint32_t n), (handle, a, b, c, d, e, f, g, h, i, j, k, l, m, n)) \
    X(vkCmdBuildAccelerationStructureNV, (Handle handle, const void *a, uint64_t b, uint64_t c, uint32_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h), (handle, a, b, c, d, e, f, g, h)) \
    X(vkCmdCopyAccelerationStructureNV, (Handle handle, uint64_t a, uint64_t b, uint32_t c), (handle, a, b, c)) \
    X(vkCmdDrawMeshTasksNV, (Handle handle, uint32_t a, uint32_t b), (handle, a, b)) \
    X(vkCmdDrawMeshTasksIndirectNV, (Handle handle, uint64_t a, uint64_t b, uint32_t c, uint32_t d), (handle, a, b, c, d)) \
    X(vkCmdDrawMeshTasksIndirectCountNV, (Handle handle, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint32_t e, uint32_t f), (handle, a, b, c, d, e, f)) \
    X(vkCmdDecompressMemoryNV, (Handle handle, uint32_t a, const void *b), (handle, a, b)) \
    X(vkCmdDecompressMemoryIndirectCountNV, (Handle handle, uint64_t a, uint64_t b, uint32_t c), (handle, a, b, c)) \
    X(vkCmdCopyMemoryIndirectNV, (Handle handle, uint64_t a, uint32_t b, uint32_t c), (handle, a, b, c)) \
    X(vkCmdCopyMemoryToImageIndirectNV, (Handle handle, uint64_t a, uint32_t b, uint32_t c, uint64_t d, uint32_t e, const void *f), (handle, a, b, c, d, e, f)) \
    X(vkCmdDrawClusterHUAWEI, (Handle handle, uint32_t a, uint32_t b, uint32_t c), (handle, a, b, c)) \
    X(vkCmdDrawClusterIndirectHUAWEI, (Handle handle, uint64_t a, uint64_t b), (handle, a, b)) \
    X(vkCmdSubpassShadingHUAWEI, (Handle handle), (handle)) \
    X(vkCmdCuLaunchKernelNVX, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdCudaLaunchKernelNV, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdPreprocessGeneratedCommandsNV, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdPreprocessGeneratedCommandsEXT, (Handle handle, const void *a, const void *b), (handle, a, b)) \
    X(vkCmdWriteBufferMarkerAMD, (Handle handle, uint32_t a, uint64_t b, uint64_t c, uint32_t d), (handle, a, b, c, d)) \
    X(vkCmdWriteBufferMarker2AMD, (Handle handle, uint64_t a, uint64_t b, uint64_t c, uint32_t d), (handle, a, b, c, d)) \
    X(vkCmdDispatchGraphAMDX, (Handle handle, uint64_t a, uint64_t b, const void *c), (handle, a, b, c)) \
    X(vkCmdDispatchGraphIndirectAMDX, (Handle handle, uint64_t a, uint64_t b, const void *c), (handle, a, b, c)) \
    X(vkCmdDispatchGraphIndirectCountAMDX, (Handle handle, uint64_t a, uint64_t b, uint64_t c), (handle, a, b, c)) \
    X(vkCmdConvertCooperativeVectorMatrixNV, (Handle handle, uint32_t a, const void *b), (handle, a, b)) \
    X(vkCmdBuildClusterAccelerationStructureIndirectNV, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdBuildPartitionedAccelerationStructuresNV, (Handle handle, const void *a), (handle, a)) \
    X(vkCmdDispatchDataGraphARM, (Handle handle, uint64_t a, const void *b), (handle, a, b))
#define UNKNOWN(name, parameters, arguments) \
    static void layer_##name parameters { \
        CALL_NEXT(handle, void, name, parameters) arguments; \
        WITH_COMMANDS(begin_command(commands, #name, UNKNOWN_ACCESSES("commands of this kind are not recorded")); end_command(commands);); \
    }
UNKNOWN_COMMANDS(UNKNOWN)

/* Commands between them may do nothing. */
static void layer_vkCmdBeginConditionalRenderingEXT(Handle handle, const void *info) {
    CALL_NEXT(handle, void, vkCmdBeginConditionalRenderingEXT, (Handle, const void *))(handle, info);
    WITH_COMMANDS(begin_command(commands, "vkCmdBeginConditionalRenderingEXT", UNKNOWN_ACCESSES("the condition is not recorded")); end_command(commands);
                  commands->is_conditional = true;);
}

static void layer_vkCmdEndConditionalRenderingEXT(Handle handle) {
    CALL_NEXT(handle, void, vkCmdEndConditionalRenderingEXT, (Handle))(handle);
    WITH_COMMANDS(commands->is_conditional = false;);
}

#define UNKNOWN_FUNCTION(name, parameters, arguments) LAYER_FUNCTION(name)
#define DRAW_FUNCTIONS \
    LAYER_FUNCTION(vkCmdBindIndexBuffer2) LAYER_FUNCTION(vkCmdBindIndexBuffer2KHR) \
    LAYER_FUNCTION(vkCmdBeginConditionalRenderingEXT) LAYER_FUNCTION(vkCmdEndConditionalRenderingEXT) \
    LAYER_FUNCTION(vkCreateRenderPass) LAYER_FUNCTION(vkCreateRenderPass2) LAYER_FUNCTION(vkCreateRenderPass2KHR) \
    LAYER_FUNCTION(vkCreateFramebuffer) LAYER_FUNCTION(vkCmdBeginRenderPass) LAYER_FUNCTION(vkCmdBeginRenderPass2) \
    LAYER_FUNCTION(vkCmdBeginRenderPass2KHR) LAYER_FUNCTION(vkCmdNextSubpass) LAYER_FUNCTION(vkCmdNextSubpass2) \
    LAYER_FUNCTION(vkCmdNextSubpass2KHR) LAYER_FUNCTION(vkCmdEndRenderPass) LAYER_FUNCTION(vkCmdEndRenderPass2) \
    LAYER_FUNCTION(vkCmdEndRenderPass2KHR) LAYER_FUNCTION(vkCmdBeginRendering) LAYER_FUNCTION(vkCmdBeginRenderingKHR) \
    LAYER_FUNCTION(vkCmdEndRendering) LAYER_FUNCTION(vkCmdEndRenderingKHR) LAYER_FUNCTION(vkCmdEndRendering2EXT) \
    LAYER_FUNCTION(vkCmdEndRendering2KHR) LAYER_FUNCTION(vkCmdClearAttachments) \
    LAYER_FUNCTION(vkCmdBindVertexBuffers) LAYER_FUNCTION(vkCmdBindVertexBuffers2) LAYER_FUNCTION(vkCmdBindVertexBuffers2EXT) \
    LAYER_FUNCTION(vkCmdBindIndexBuffer) LAYER_FUNCTION(vkCmdDraw) LAYER_FUNCTION(vkCmdDrawIndexed) LAYER_FUNCTION(vkCmdDrawIndirect) \
    LAYER_FUNCTION(vkCmdDrawIndexedIndirect) LAYER_FUNCTION(vkCmdDrawIndirectCount) LAYER_FUNCTION(vkCmdDrawIndirectCountKHR) \
    LAYER_FUNCTION(vkCmdDrawIndexedIndirectCount) LAYER_FUNCTION(vkCmdDrawIndexedIndirectCountKHR) LAYER_FUNCTION(vkCmdDrawMeshTasksEXT) \
    LAYER_FUNCTION(vkCmdDrawMeshTasksIndirectEXT) LAYER_FUNCTION(vkCmdDrawIndirectCountAMD) LAYER_FUNCTION(vkCmdDrawIndexedIndirectCountAMD) \
    UNKNOWN_COMMANDS(UNKNOWN_FUNCTION)
