/* The parts of Vulkan's ABI that the recording layer reads: no Vulkan headers are needed to build it. */

enum { SAMPLER, IMAGE_AND_SAMPLER, SAMPLED_IMAGE, STORAGE_IMAGE, UNIFORM_TEXELS, STORAGE_TEXELS, UNIFORM_BUFFER, STORAGE_BUFFER,
       UNIFORM_BUFFER_DYNAMIC, STORAGE_BUFFER_DYNAMIC, INPUT_ATTACHMENT };
enum { MODULE_INFO = 16, SEMAPHORE_TYPE = 1000207002, TIMELINE_VALUES = 1000207003, SUBGROUP_SIZE_INFO = 1000225001, SUBGROUP_PROPERTIES = 1000094000,
       PROPERTIES2 = 1000059001 };
enum { INLINE_UNIFORM_BLOCK = 1000138000, INLINE_UNIFORM_WRITE = 1000138002, MEMORY_BARRIER2 = 1000314000, ATTACHMENT_BEGIN_INFO = 1000108003 };
enum { GRAPHICS_POINT = 0, COMPUTE_POINT = 1, POINT_COUNT = 2, COMPUTE_STAGE = 0x20, GRAPHICS_STAGES = 0x1f };
static const uint64_t WHOLE_SIZE = ~(uint64_t)0;
/* Pipeline stages and accesses of the barriers around a copy of contents. */
enum { STAGE_TRANSFER = 0x1000, STAGE_ALL = 0x10000, READ_TRANSFER = 0x800, WRITE_TRANSFER = 0x1000, WRITE_HOST = 0x4000, READ_ANY = 0x8000,
       WRITE_ANY = 0x10000 };

typedef struct ModuleInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    size_t size;
    const void *code;
} ModuleInfo;

typedef struct SpecializationEntry {
    uint32_t id, offset;
    size_t size;
} SpecializationEntry;

typedef struct SpecializationInfo {
    uint32_t count;
    const SpecializationEntry *entries;
    size_t size;
    const void *data;
} SpecializationInfo;

typedef struct StageInfo {
    int32_t type;
    const Header *next;
    uint32_t flags, stage;
    uint64_t module;
    const char *entry;
    const SpecializationInfo *specialization;
} StageInfo;

typedef struct PipelineInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    StageInfo stage;
    uint64_t layout, base;
    int32_t base_index;
} PipelineInfo;

/* The beginning of VkGraphicsPipelineCreateInfo. */
typedef struct GraphicsPipelineInfo {
    int32_t type;
    const void *next;
    uint32_t flags, stage_count;
    const StageInfo *stages;
    const void *states[9];
    uint64_t layout, pass;
    uint32_t subpass;
    uint64_t base;
    int32_t base_index;
} GraphicsPipelineInfo;

typedef struct RasterizationInfo {
    int32_t type;
    const void *next;
    uint32_t flags, is_clamped, discards;
} RasterizationInfo;

typedef struct BlendAttachment {
    uint32_t is_enabled, factors[6], write_mask;
} BlendAttachment;

typedef struct BlendInfo {
    int32_t type;
    const void *next;
    uint32_t flags, is_logic_enabled, logic, count;
    const BlendAttachment *attachments;
} BlendInfo;

typedef struct StencilState {
    uint32_t fail, pass, depth_fail, compare, compare_mask, write_mask, reference;
} StencilState;

typedef struct TestInfo {
    int32_t type;
    const void *next;
    uint32_t flags, has_depth, writes_depth, compare, has_bounds, has_stencil;
    StencilState sides[2];
} TestInfo;

typedef struct VertexBinding {
    uint32_t binding, stride, is_per_instance;
} VertexBinding;

typedef struct VertexAttribute {
    uint32_t location, binding;
    int32_t format;
    uint32_t offset;
} VertexAttribute;

typedef struct VertexInputInfo {
    int32_t type;
    const void *next;
    uint32_t flags, binding_count;
    const VertexBinding *bindings;
    uint32_t attribute_count;
    const VertexAttribute *attributes;
} VertexInputInfo;

typedef struct DynamicStateInfo {
    int32_t type;
    const void *next;
    uint32_t flags, count;
    const int32_t *states;
} DynamicStateInfo;

typedef struct PushRange {
    uint32_t stages, offset, size;
} PushRange;

typedef struct PipelineLayoutInfo {
    int32_t type;
    const void *next;
    uint32_t flags, set_count;
    const uint64_t *sets;
    uint32_t range_count;
    const PushRange *ranges;
} PipelineLayoutInfo;

typedef struct SubgroupSize {
    int32_t type;
    const void *next;
    uint32_t size;
} SubgroupSize;

/* VkPipelineRobustnessCreateInfo. */
typedef struct RobustnessInfo {
    int32_t type;
    const void *next;
    int32_t storage, uniform, vertices, images;
} RobustnessInfo;

typedef struct LayoutBinding {
    uint32_t binding;
    int32_t type;
    uint32_t count, stages;
    const uint64_t *samplers;
} LayoutBinding;

typedef struct LayoutInfo {
    int32_t type;
    const void *next;
    uint32_t flags, count;
    const LayoutBinding *bindings;
} LayoutInfo;

typedef struct SetAllocateInfo {
    int32_t type;
    const void *next;
    uint64_t pool;
    uint32_t count;
    const uint64_t *layouts;
} SetAllocateInfo;

typedef struct ImageDescriptor {
    uint64_t sampler, view;
    int32_t layout;
} ImageDescriptor;

typedef struct BufferDescriptor {
    uint64_t buffer, offset, range;
} BufferDescriptor;

typedef struct DescriptorWrite {
    int32_t type;
    const Header *next;
    uint64_t set;
    uint32_t binding, element, count;
    int32_t kind;
    const ImageDescriptor *images;
    const BufferDescriptor *buffers;
    const uint64_t *texels;
} DescriptorWrite;

typedef struct InlineWrite {
    int32_t type;
    const void *next;
    uint32_t size;
    const void *data;
} InlineWrite;

typedef struct DescriptorCopy {
    int32_t type;
    const void *next;
    uint64_t from;
    uint32_t from_binding, from_element;
    uint64_t to;
    uint32_t to_binding, to_element, count;
} DescriptorCopy;

typedef struct BufferInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t size;
    uint32_t usage, sharing, family_count;
    const uint32_t *families;
} BufferInfo;

typedef struct ImageInfo {
    int32_t type;
    const void *next;
    uint32_t flags, image_type;
    int32_t format;
    uint32_t size[3], levels, layers, samples, tiling, usage, sharing, family_count;
    const uint32_t *families;
    int32_t layout;
} ImageInfo;

typedef struct SubresourceRange {
    uint32_t aspect, level, levels, layer, layers;
} SubresourceRange;

typedef struct ViewInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t image;
    int32_t view_type, format, components[4];
    SubresourceRange range;
} ViewInfo;

/* The beginning of VkBufferViewCreateInfo. */
typedef struct BufferViewInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t buffer;
    int32_t format;
    uint64_t offset, range;
} BufferViewInfo;

typedef struct SwapchainInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t surface;
    uint32_t count;
    int32_t format, colour_space;
    uint32_t size[2], layers, usage, sharing, family_count;
    const uint32_t *families;
    int32_t transform, alpha, mode;
    uint32_t is_clipped;
    uint64_t old;
} SwapchainInfo;

typedef struct BindSparseInfo {
    int32_t type;
    const Header *next;
    uint32_t wait_count;
    const uint64_t *waits;
    struct { uint32_t count; const void *binds; } resources[3];
    uint32_t signal_count;
    const uint64_t *signals;
} BindSparseInfo;

typedef struct PresentInfo {
    int32_t type;
    const void *next;
    uint32_t wait_count;
    const uint64_t *waits;
    uint32_t count;
    const uint64_t *swapchains;
    const uint32_t *indices;
    int32_t *results;
} PresentInfo;

typedef struct DescriptorGetInfo {
    int32_t type;
    const void *next;
    int32_t kind;
    const void *data;
} DescriptorGetInfo;

typedef struct DescriptorAddress {
    int32_t type;
    const void *next;
    uint64_t address, range;
    int32_t format;
} DescriptorAddress;

typedef struct DescriptorBufferBinding {
    int32_t type;
    const void *next;
    uint64_t address;
    uint32_t usage;
} DescriptorBufferBinding;

typedef struct DescriptorBufferOffsets {
    int32_t type;
    const void *next;
    uint32_t stages;
    uint64_t layout;
    uint32_t first, count;
    const uint32_t *indices;
    const uint64_t *offsets;
} DescriptorBufferOffsets;

typedef struct SamplerInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    int32_t mag_filter, min_filter, mip_mode, address_modes[3];
} SamplerInfo;

typedef struct AddressInfo {
    int32_t type;
    const void *next;
    uint64_t buffer;
} AddressInfo;

typedef struct MemoryAllocateInfo {
    int32_t type;
    const void *next;
    uint64_t size;
    uint32_t index;
} MemoryAllocateInfo;

typedef struct MapInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t memory, offset, size;
} MapInfo;

typedef struct UnmapInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t memory;
} UnmapInfo;

/* VkHostImageLayoutTransitionInfo. */
typedef struct HostTransition {
    int32_t type;
    const void *next;
    uint64_t image;
    int32_t from_layout, to_layout;
    SubresourceRange range;
} HostTransition;

typedef struct MappedRange {
    int32_t type;
    const void *next;
    uint64_t memory, offset, size;
} MappedRange;

typedef struct MemoryRequirements {
    uint64_t size, alignment;
    uint32_t types;
} MemoryRequirements;

typedef struct MemoryProperties {
    uint32_t count;
    struct { uint32_t flags, heap; } types[32];
    uint32_t heap_count;
    struct { uint64_t size; uint32_t flags; } heaps[16];
} MemoryProperties;

typedef struct MemoryBarrier {
    int32_t type;
    const void *next;
    uint32_t from, to;
} MemoryBarrier;

typedef struct ImageBarrier {
    int32_t type;
    const void *next;
    uint32_t from, to;
    int32_t from_layout, to_layout;
    uint32_t from_family, to_family;
    uint64_t image;
    SubresourceRange range;
} ImageBarrier;

typedef struct ImageCopy {
    uint64_t offset;
    uint32_t row, height, aspect, level, layer, layers;
    int32_t begin[3];
    uint32_t size[3];
} ImageCopy;

typedef struct SubresourceLayers {
    uint32_t aspect, level, layer, count;
} SubresourceLayers;

typedef struct ImageRegion {
    struct { SubresourceLayers layers; int32_t begin[3]; } sides[2];
    uint32_t size[3];
} ImageRegion;

typedef struct ImageBlit {
    struct { SubresourceLayers layers; int32_t corners[2][3]; } sides[2];
} ImageBlit;

typedef struct ImageTransfer2 {
    int32_t type;
    const void *next;
    uint64_t from;
    int32_t from_layout;
    uint64_t to;
    int32_t to_layout;
    uint32_t count;
    const void *regions;
} ImageTransfer2;

typedef struct BufferToImage2 {
    int32_t type;
    const void *next;
    uint64_t buffer, image;
    int32_t layout;
    uint32_t count;
    const void *regions;
} BufferToImage2;

typedef struct ImageToBuffer2 {
    int32_t type;
    const void *next;
    uint64_t image;
    int32_t layout;
    uint64_t buffer;
    uint32_t count;
    const void *regions;
} ImageToBuffer2;

typedef struct Attachment {
    uint32_t flags;
    int32_t format;
    uint32_t samples;
    int32_t load, store, stencil_load, stencil_store, from_layout, to_layout;
} Attachment;

typedef struct BindSetsInfo {
    int32_t type;
    const void *next;
    uint32_t stages;
    uint64_t layout;
    uint32_t first, count;
    const uint64_t *sets;
    uint32_t offset_count;
    const uint32_t *offsets;
} BindSetsInfo;

typedef struct PushConstantsInfo {
    int32_t type;
    const void *next;
    uint64_t layout;
    uint32_t stages, offset, size;
    const void *values;
} PushConstantsInfo;

typedef struct PushSetInfo {
    int32_t type;
    const void *next;
    uint32_t stages;
    uint64_t layout;
    uint32_t set, count;
    const DescriptorWrite *writes;
} PushSetInfo;

typedef struct PushTemplateInfo {
    int32_t type;
    const void *next;
    uint64_t from, layout;
    uint32_t set;
    const void *data;
} PushTemplateInfo;

typedef struct AttachmentReference {
    uint32_t attachment;
    int32_t layout;
} AttachmentReference;

/* VkAttachmentReferenceStencilLayout, or VkAttachmentDescriptionStencilLayout, which has the final layout. */
typedef struct StencilLayout {
    int32_t type;
    const void *next;
    int32_t layout, final_layout;
} StencilLayout;

typedef struct SubpassInfo {
    uint32_t flags;
    int32_t point;
    uint32_t input_count;
    const void *inputs;
    uint32_t colour_count;
    const void *colours, *resolves, *depth;
    uint32_t preserved_count;
    const void *preserved;
} SubpassInfo;

typedef struct SubpassInfo2 {
    int32_t type;
    const Header *next;
    uint32_t flags;
    int32_t point;
    uint32_t view_mask, input_count;
    const void *inputs;
    uint32_t colour_count;
    const void *colours, *resolves, *depth;
    uint32_t preserved_count;
    const void *preserved;
} SubpassInfo2;

typedef struct DepthResolve {
    int32_t type;
    const Header *next;
    uint32_t depth_mode, stencil_mode;
    const void *attachment;
} DepthResolve;

typedef struct ShadingRate {
    int32_t type;
    const Header *next;
    const void *attachment;
    uint32_t size[2];
} ShadingRate;

typedef struct SubpassDependency {
    uint32_t from, to, from_stages, to_stages, from_accesses, to_accesses, flags;
} SubpassDependency;

/* The beginning of VkRenderPassCreateInfo and VkRenderPassCreateInfo2. */
typedef struct RenderPassInfo {
    int32_t type;
    const void *next;
    uint32_t flags, attachment_count;
    const void *attachments;
    uint32_t subpass_count;
    const void *subpasses;
    uint32_t dependency_count;
    const void *dependencies;
} RenderPassInfo;

typedef struct ClearAttachment {
    uint32_t aspects, location, value[4];
} ClearAttachment;

typedef struct FramebufferInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t pass;
    uint32_t count;
    const uint64_t *views;
    uint32_t size[2], layers;
} FramebufferInfo;

typedef struct RenderArea {
    int32_t x, y;
    uint32_t width, height;
} RenderArea;

typedef struct ClearRectangle {
    RenderArea area;
    uint32_t layer, layers;
} ClearRectangle;

typedef struct RenderPassBegin {
    int32_t type;
    const Header *next;
    uint64_t pass, framebuffer;
    RenderArea area;
    uint32_t clear_count;
    const void *clear;
} RenderPassBegin;

typedef struct AttachmentBegin {
    int32_t type;
    const void *next;
    uint32_t count;
    const uint64_t *views;
} AttachmentBegin;

typedef struct RenderingAttachment {
    int32_t type;
    const void *next;
    uint64_t view;
    int32_t layout, resolve_mode;
    uint64_t resolve_view;
    int32_t resolve_layout, load, store;
    uint32_t clear[4];
} RenderingAttachment;

typedef struct RenderingInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    RenderArea area;
    uint32_t layers, view_mask, count;
    const RenderingAttachment *colours, *depth, *stencil;
} RenderingInfo;

typedef struct SubmitInfo {
    int32_t type;
    const Header *next;
    uint32_t wait_count;
    const uint64_t *waits;
    const uint32_t *stages;
    uint32_t command_count;
    const Handle *commands;
    uint32_t signal_count;
    const uint64_t *signals;
} SubmitInfo;

typedef struct TimelineValues {
    int32_t type;
    const void *next;
    uint32_t wait_count;
    const uint64_t *waits;
    uint32_t signal_count;
    const uint64_t *signals;
} TimelineValues;

typedef struct SemaphoreInfo {
    int32_t type;
    const void *next;
    uint64_t semaphore, value, stages;
    uint32_t device;
} SemaphoreInfo;

typedef struct CommandBufferInfo {
    int32_t type;
    const void *next;
    Handle commands;
    uint32_t mask;
} CommandBufferInfo;

typedef struct SubmitInfo2 {
    int32_t type;
    const void *next;
    uint32_t flags, wait_count;
    const SemaphoreInfo *waits;
    uint32_t command_count;
    const CommandBufferInfo *commands;
    uint32_t signal_count;
    const SemaphoreInfo *signals;
} SubmitInfo2;

typedef struct BufferBarrier {
    int32_t type;
    const void *next;
    uint32_t from, to, from_family, to_family;
    uint64_t buffer, offset, size;
} BufferBarrier;

typedef struct MemoryBarrier2 {
    int32_t type;
    const void *next;
    uint64_t from_stages, from, to_stages, to;
} MemoryBarrier2;

typedef struct BufferBarrier2 {
    int32_t type;
    const void *next;
    uint64_t from_stages, from, to_stages, to;
    uint32_t from_family, to_family;
    uint64_t buffer, offset, size;
} BufferBarrier2;

typedef struct ImageBarrier2 {
    int32_t type;
    const void *next;
    uint64_t from_stages, from, to_stages, to;
    int32_t from_layout, to_layout;
    uint32_t from_family, to_family;
    uint64_t image;
    SubresourceRange range;
} ImageBarrier2;

typedef struct DependencyInfo {
    int32_t type;
    const void *next;
    uint32_t flags, memory_count;
    const MemoryBarrier2 *memory;
    uint32_t buffer_count;
    const BufferBarrier2 *buffers;
    uint32_t image_count;
    const ImageBarrier2 *images;
} DependencyInfo;

typedef struct BufferRegion {
    uint64_t from, to, size;
} BufferRegion;

typedef struct BufferRegion2 {
    int32_t type;
    const void *next;
    uint64_t from, to, size;
} BufferRegion2;

typedef struct BufferCopy2 {
    int32_t type;
    const void *next;
    uint64_t from, to;
    uint32_t count;
    const BufferRegion2 *regions;
} BufferCopy2;

typedef struct BindInfo {
    int32_t type;
    const void *next;
    uint64_t object, memory, offset;
} BindInfo;

typedef struct TemplateEntry {
    uint32_t binding, element, count;
    int32_t kind;
    size_t offset, stride;
} TemplateEntry;

typedef struct TemplateInfo {
    int32_t type;
    const void *next;
    uint32_t flags, count;
    const TemplateEntry *entries;
    int32_t template_type;
    uint64_t layout;
    int32_t point;
    uint64_t pipeline_layout;
    uint32_t set;
} TemplateInfo;

typedef struct QueueInfo2 {
    int32_t type;
    const void *next;
    uint32_t flags, family, index;
} QueueInfo2;

typedef struct CommandBuffersInfo {
    int32_t type;
    const void *next;
    uint64_t pool;
    int32_t level;
    uint32_t count;
} CommandBuffersInfo;

typedef struct NameInfo {
    int32_t type;
    const void *next;
    int32_t kind;
    uint64_t object;
    const char *name;
} NameInfo;

typedef struct LabelInfo {
    int32_t type;
    const void *next;
    const char *name;
} LabelInfo;

typedef struct FenceInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
} FenceInfo;

typedef struct SemaphoreType {
    int32_t type;
    const void *next;
    int32_t semaphore_type; /* 1: timeline */
} SemaphoreType;

typedef struct SemaphoreWaitInfo {
    int32_t type;
    const void *next;
    uint32_t flags, count;
    const uint64_t *semaphores, *values;
} SemaphoreWaitInfo;

typedef struct SemaphoreSignalInfo {
    int32_t type;
    const void *next;
    uint64_t semaphore, value;
} SemaphoreSignalInfo;
