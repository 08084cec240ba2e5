/* Short programs with a fault of synchronization each, and the same ones without it. Arguments: the first module (sequences0.spv; the
 * others are next to it), the program, and "right" or "wrong". Exits with 77 if the device lacks what the program needs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define CHECK(call) if ((call) != VK_SUCCESS) { fprintf(stderr, "%s\n", #call); exit(3); }
enum { WORDS = 64, BYTES = 4 * WORDS, BUFFERS = 4, SLOT = 1 << 16, UNSUPPORTED = 77, MODES = 6 };
#define COMPUTE VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT
#define COPY VK_PIPELINE_STAGE_2_COPY_BIT
#define CLEAR VK_PIPELINE_STAGE_2_CLEAR_BIT
#define BLIT VK_PIPELINE_STAGE_2_BLIT_BIT
#define INDIRECT VK_PIPELINE_STAGE_2_DRAW_INDIRECT_BIT
#define OUTPUT VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT
#define ANYTHING VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT
#define TESTS (VK_PIPELINE_STAGE_2_EARLY_FRAGMENT_TESTS_BIT | VK_PIPELINE_STAGE_2_LATE_FRAGMENT_TESTS_BIT)
#define READ VK_ACCESS_2_SHADER_STORAGE_READ_BIT
#define WRITE VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT
#define SAMPLED VK_ACCESS_2_SHADER_SAMPLED_READ_BIT
#define FROM VK_ACCESS_2_TRANSFER_READ_BIT
#define TO VK_ACCESS_2_TRANSFER_WRITE_BIT
#define DRAWN VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT
#define LOADED VK_ACCESS_2_COLOR_ATTACHMENT_READ_BIT
#define DEPTH VK_ACCESS_2_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT
#define GENERAL VK_IMAGE_LAYOUT_GENERAL

static int is_wrong, is_read; /* True if the program itself makes its results visible to the host. */
static const char *first_module;
static VkDevice device;
static VkQueue queues[2];
static VkCommandPool pools[2];
static VkBuffer buffers[BUFFERS];
static uint32_t *contents;
static VkDeviceMemory memory;
static VkPipelineLayout layout;
static VkDescriptorSet set;
static VkPipeline pipelines[MODES];
static VkImage colour, integers, depth, alias, mips;
static VkImageView colour_view, depth_view;
static uint32_t next_slot = BUFFERS;
static VkInstance instance;
static VkPhysicalDevice physical;

static VkImage create_image(VkFormat format, VkImageUsageFlags usage, uint32_t levels, uint32_t slot) {
    VkImageCreateInfo info = { VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D, .format = format, .extent = { 4, 4, 1 },
        .mipLevels = levels, .arrayLayers = 1, .samples = VK_SAMPLE_COUNT_1_BIT, .tiling = VK_IMAGE_TILING_OPTIMAL,
        .usage = usage | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT };
    VkImage image;
    CHECK(vkCreateImage(device, &info, NULL, &image));
    VkMemoryRequirements needed;
    vkGetImageMemoryRequirements(device, image, &needed);
    CHECK(vkBindImageMemory(device, image, memory, (VkDeviceSize)(slot ? slot : next_slot++) * SLOT));
    return image;
}

static VkImageView create_view(VkImage image, VkFormat format, VkImageAspectFlags aspect) {
    VkImageViewCreateInfo info = { VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO, .image = image, .viewType = VK_IMAGE_VIEW_TYPE_2D, .format = format,
        .subresourceRange = { aspect, 0, 1, 0, 1 } };
    VkImageView view;
    CHECK(vkCreateImageView(device, &info, NULL, &view));
    return view;
}

static VkShaderModule load_module(const char *suffix) {
    static uint32_t code[1 << 14];
    char path[4096];
    snprintf(path, sizeof path, "%.*s%s", (int)(strlen(first_module) - 5), first_module, suffix);
    FILE *file = fopen(path, "rb");
    if (!file) exit(3);
    VkShaderModuleCreateInfo info = { VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = 4 * fread(code, 4, 1 << 14, file), .pCode = code };
    fclose(file);
    VkShaderModule module;
    CHECK(vkCreateShaderModule(device, &info, NULL, &module));
    return module;
}

static const char *vertices = "0.spv.vert0";

static VkPipeline create_draw(VkRenderPass pass, uint32_t subpass, const char *fragments, int has_depth) {
    VkPipelineShaderStageCreateInfo stages[2] = { { VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_VERTEX_BIT, .pName = "main",
            .module = load_module(vertices) },
        { VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_FRAGMENT_BIT, .pName = "main", .module = load_module(fragments) } };
    VkPipelineVertexInputStateCreateInfo input = { VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO };
    VkPipelineInputAssemblyStateCreateInfo assembly = { VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO, .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST };
    VkViewport viewport = { 0, 0, 4, 4, 0, 1 };
    VkRect2D scissor = { { 0, 0 }, { 4, 4 } };
    VkPipelineViewportStateCreateInfo viewports = { VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, NULL, 0, 1, &viewport, 1, &scissor };
    VkPipelineRasterizationStateCreateInfo rasterization = { VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .lineWidth = 1 };
    VkPipelineMultisampleStateCreateInfo samples = { VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO, .rasterizationSamples = VK_SAMPLE_COUNT_1_BIT };
    VkPipelineColorBlendAttachmentState blended = { .colorWriteMask = 0xf };
    VkPipelineColorBlendStateCreateInfo blend = { VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO, .attachmentCount = 1, .pAttachments = &blended };
    VkPipelineDepthStencilStateCreateInfo tests = { VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO, .depthTestEnable = VK_TRUE,
        .depthWriteEnable = VK_TRUE, .depthCompareOp = VK_COMPARE_OP_ALWAYS };
    VkFormat format = VK_FORMAT_R8G8B8A8_UNORM;
    VkPipelineRenderingCreateInfo rendering = { VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO, NULL, 0, 1, &format, has_depth ? VK_FORMAT_D32_SFLOAT : 0, 0 };
    VkGraphicsPipelineCreateInfo info = { VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO, pass ? NULL : &rendering, .stageCount = 2, .pStages = stages,
        .pVertexInputState = &input, .pInputAssemblyState = &assembly, .pViewportState = &viewports, .pRasterizationState = &rasterization,
        .pMultisampleState = &samples, .pDepthStencilState = has_depth ? &tests : NULL, .pColorBlendState = &blend, .layout = layout, .renderPass = pass, .subpass = subpass };
    VkPipeline pipeline;
    CHECK(vkCreateGraphicsPipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline));
    return pipeline;
}

static VkCommandBuffer begin(int family) {
    VkCommandBufferAllocateInfo info = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pools[family], .commandBufferCount = 1 };
    VkCommandBuffer commands;
    CHECK(vkAllocateCommandBuffers(device, &info, &commands));
    VkCommandBufferBeginInfo begin = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO };
    CHECK(vkBeginCommandBuffer(commands, &begin));
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, NULL);
    if (family == 0) vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, layout, 0, 1, &set, 0, NULL);
    return commands;
}

/* Submits to a queue. Semaphores may be null; values are those of timeline semaphores. */
static void submit_to(int queue, VkCommandBuffer commands, VkSemaphore wait, uint64_t value, VkPipelineStageFlags2 stage, VkSemaphore signal, uint64_t signalled,
                      VkFence fence) {
    CHECK(vkEndCommandBuffer(commands));
    VkSemaphoreSubmitInfo waits = { VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO, NULL, wait, value, stage, 0 };
    VkSemaphoreSubmitInfo signals = { VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO, NULL, signal, signalled, ANYTHING, 0 };
    VkCommandBufferSubmitInfo buffer = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, NULL, commands, 0 };
    VkSubmitInfo2 info = { VK_STRUCTURE_TYPE_SUBMIT_INFO_2, NULL, 0, wait ? 1 : 0, &waits, 1, &buffer, signal ? 1 : 0, &signals };
    CHECK(vkQueueSubmit2(queues[queue], 1, &info, fence));
}

static void submit(VkCommandBuffer commands) { submit_to(0, commands, VK_NULL_HANDLE, 0, 0, VK_NULL_HANDLE, 0, VK_NULL_HANDLE); }

static void dispatch(VkCommandBuffer commands, int mode) {
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines[mode]);
    vkCmdDispatch(commands, 1, 1, 1);
}

static void depend(VkCommandBuffer commands, VkDependencyInfo info) {
    info.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO;
    vkCmdPipelineBarrier2(commands, &info);
}

static VkMemoryBarrier2 scopes(uint64_t from, uint64_t from_access, uint64_t to, uint64_t to_access) {
    return (VkMemoryBarrier2){ VK_STRUCTURE_TYPE_MEMORY_BARRIER_2, NULL, from, from_access, to, to_access };
}

static void barrier(VkCommandBuffer commands, uint64_t from, uint64_t from_access, uint64_t to, uint64_t to_access) {
    VkMemoryBarrier2 memory_barrier = scopes(from, from_access, to, to_access);
    depend(commands, (VkDependencyInfo){ .memoryBarrierCount = 1, .pMemoryBarriers = &memory_barrier });
}

static void transition(VkCommandBuffer commands, VkImage image, VkImageAspectFlags aspect, VkMemoryBarrier2 scopes, VkImageLayout from, VkImageLayout to,
                       uint32_t level, uint32_t levels) {
    VkImageMemoryBarrier2 image_barrier = { VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2, NULL, scopes.srcStageMask, scopes.srcAccessMask, scopes.dstStageMask,
        scopes.dstAccessMask, from, to, VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, image, { aspect, level, levels, 0, 1 } };
    depend(commands, (VkDependencyInfo){ .imageMemoryBarrierCount = 1, .pImageMemoryBarriers = &image_barrier });
}

/* Puts an image that has no contents into the general layout, before everything. */
static void prepare(VkCommandBuffer commands, VkImage image, VkImageAspectFlags aspect, uint32_t levels) {
    transition(commands, image, aspect, scopes(ANYTHING, 0, ANYTHING, VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT), VK_IMAGE_LAYOUT_UNDEFINED, GENERAL, 0, levels);
}

static void copy_words(VkCommandBuffer commands, int from, int to, VkDeviceSize offset, VkDeviceSize size) {
    VkBufferCopy region = { offset, offset, size };
    vkCmdCopyBuffer(commands, buffers[from], buffers[to], 1, &region);
}

static VkBufferImageCopy texels(VkImageAspectFlags aspect, uint32_t level) {
    return (VkBufferImageCopy){ .imageSubresource = { aspect, level, 0, 1 }, .imageExtent = { 4 >> level, 4 >> level, 1 } };
}

static void read_image(VkCommandBuffer commands, VkImage image, VkImageLayout image_layout, uint32_t level) {
    VkBufferImageCopy region = texels(VK_IMAGE_ASPECT_COLOR_BIT, level);
    vkCmdCopyImageToBuffer(commands, image, image_layout, buffers[2], 1, &region);
}

static void clear_colour(VkCommandBuffer commands, VkImage image) {
    VkClearColorValue value = { { 1, 1, 1, 1 } };
    VkImageSubresourceRange whole = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 };
    vkCmdClearColorImage(commands, image, GENERAL, &value, 1, &whole);
}

static VkSemaphore create_semaphore(VkSemaphoreType type) {
    VkSemaphoreTypeCreateInfo type_info = { VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, NULL, type, 0 };
    VkSemaphoreCreateInfo info = { VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type_info };
    VkSemaphore semaphore;
    CHECK(vkCreateSemaphore(device, &info, NULL, &semaphore));
    return semaphore;
}

/* A render pass whose attachments are `colour` and, in the second subpass, `mips`. */
static VkRenderPass create_pass(VkAttachmentLoadOp load, VkImageLayout initial, VkImageLayout final, uint32_t subpass_count, uint32_t count, const VkSubpassDependency *dependencies) {
    VkAttachmentDescription attachments[2] = { { 0, VK_FORMAT_R8G8B8A8_UNORM, VK_SAMPLE_COUNT_1_BIT, load, VK_ATTACHMENT_STORE_OP_STORE,
            VK_ATTACHMENT_LOAD_OP_DONT_CARE, VK_ATTACHMENT_STORE_OP_DONT_CARE, initial, final },
        { 0, VK_FORMAT_R8G8B8A8_UNORM, VK_SAMPLE_COUNT_1_BIT, VK_ATTACHMENT_LOAD_OP_CLEAR, VK_ATTACHMENT_STORE_OP_STORE,
            VK_ATTACHMENT_LOAD_OP_DONT_CARE, VK_ATTACHMENT_STORE_OP_DONT_CARE, GENERAL, GENERAL } };
    VkAttachmentReference references[2] = { { 0, GENERAL }, { 1, GENERAL } };
    VkSubpassDescription subpasses[2] = { { .colorAttachmentCount = 1, .pColorAttachments = &references[0] },
        { .inputAttachmentCount = 1, .pInputAttachments = &references[0], .colorAttachmentCount = 1, .pColorAttachments = &references[1] } };
    VkRenderPassCreateInfo info = { VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO, NULL, 0, subpass_count, attachments, subpass_count, subpasses, count, dependencies };
    VkRenderPass pass;
    CHECK(vkCreateRenderPass(device, &info, NULL, &pass));
    return pass;
}

static void begin_pass(VkCommandBuffer commands, VkRenderPass pass, uint32_t count, VkImageView second) {
    VkImageView views[2] = { colour_view, second };
    VkFramebufferCreateInfo framebuffer_info = { VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO, .renderPass = pass, .attachmentCount = count, .pAttachments = views,
        .width = 4, .height = 4, .layers = 1 };
    VkFramebuffer framebuffer;
    CHECK(vkCreateFramebuffer(device, &framebuffer_info, NULL, &framebuffer));
    static const VkClearValue values[2];
    VkRenderPassBeginInfo info = { VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO, NULL, pass, framebuffer, { { 0, 0 }, { 4, 4 } }, 2, values };
    vkCmdBeginRenderPass(commands, &info, VK_SUBPASS_CONTENTS_INLINE);
}

static void begin_rendering(VkCommandBuffer commands, int has_depth) {
    VkRenderingAttachmentInfo target = { VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO, .imageView = colour_view, .imageLayout = GENERAL,
        .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR, .storeOp = VK_ATTACHMENT_STORE_OP_STORE };
    VkRenderingAttachmentInfo tested = { VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO, .imageView = depth_view, .imageLayout = GENERAL,
        .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR, .storeOp = VK_ATTACHMENT_STORE_OP_STORE };
    VkRenderingInfo info = { VK_STRUCTURE_TYPE_RENDERING_INFO, NULL, 0, { { 0, 0 }, { 4, 4 } }, 1, 0, 1, &target, has_depth ? &tested : NULL, NULL };
    vkCmdBeginRendering(commands, &info);
}

/* Flushes what the host wrote to a slot. */
static void flush(uint32_t slot, VkDeviceSize size) {
    VkMappedMemoryRange range = { VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, NULL, memory, slot * SLOT, size };
    CHECK(vkFlushMappedMemoryRanges(device, 1, &range));
}

/* Makes what the submitted commands wrote visible to the host. */
static void show_to_host(void) {
    for (int family = 0; family < 2 && queues[family]; family++) {
        VkCommandBuffer commands = begin(family);
        barrier(commands, ANYTHING, VK_ACCESS_2_MEMORY_WRITE_BIT, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
        submit_to(family, commands, VK_NULL_HANDLE, 0, 0, VK_NULL_HANDLE, 0, VK_NULL_HANDLE);
    }
    CHECK(vkDeviceWaitIdle(device));
    VkMappedMemoryRange range = { VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, NULL, memory, 0, VK_WHOLE_SIZE };
    CHECK(vkInvalidateMappedMemoryRanges(device, 1, &range));
}

/* The programs. */

static void mip_levels(void) {
    VkCommandBuffer commands = begin(0);
    VkBufferImageCopy region = texels(VK_IMAGE_ASPECT_COLOR_BIT, 1);
    prepare(commands, mips, VK_IMAGE_ASPECT_COLOR_BIT, 3);
    vkCmdCopyBufferToImage(commands, buffers[0], mips, GENERAL, 1, &region);
    transition(commands, mips, VK_IMAGE_ASPECT_COLOR_BIT, scopes(COPY, TO, COPY, FROM), GENERAL, GENERAL, is_wrong ? 0 : 1, 1);
    read_image(commands, mips, GENERAL, 1);
    submit(commands);
}

static void mip_chain(void) {
    VkCommandBuffer commands = begin(0);
    prepare(commands, mips, VK_IMAGE_ASPECT_COLOR_BIT, 3);
    clear_colour(commands, mips);
    for (uint32_t level = 1; level < 3; level++) {
        if (level == 1) barrier(commands, CLEAR, TO, BLIT, FROM);
        else if (!is_wrong) barrier(commands, BLIT, TO, BLIT, FROM);
        int32_t size = 4 >> level;
        VkImageBlit blit = { { VK_IMAGE_ASPECT_COLOR_BIT, level - 1, 0, 1 }, { { 0 }, { 2 * size, 2 * size, 1 } }, { VK_IMAGE_ASPECT_COLOR_BIT, level, 0, 1 },
            { { 0 }, { size, size, 1 } } };
        vkCmdBlitImage(commands, mips, GENERAL, mips, GENERAL, 1, &blit, VK_FILTER_NEAREST);
    }
    submit(commands);
}

static void barrier_range(void) {
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 0, 1, 128, 64);
    VkBufferMemoryBarrier2 part = { VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER_2, NULL, COPY, TO, COPY, FROM, VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED,
        buffers[1], is_wrong ? 0 : 128, is_wrong ? 128 : VK_WHOLE_SIZE };
    depend(commands, (VkDependencyInfo){ .bufferMemoryBarrierCount = 1, .pBufferMemoryBarriers = &part });
    copy_words(commands, 1, 2, 128, 64);
    submit(commands);
}

static void uniform_read(void) {
    VkCommandBuffer commands = begin(0);
    vkCmdUpdateBuffer(commands, buffers[3], 0, 64, contents);
    barrier(commands, CLEAR, TO, COMPUTE, is_wrong ? READ : VK_ACCESS_2_UNIFORM_READ_BIT);
    dispatch(commands, 3);
    submit(commands);
}

static void clear_stage(void) {
    VkCommandBuffer commands = begin(0);
    vkCmdFillBuffer(commands, buffers[3], 0, 64, 0);
    barrier(commands, is_wrong ? COPY : CLEAR, TO, COMPUTE, VK_ACCESS_2_UNIFORM_READ_BIT);
    dispatch(commands, 3);
    submit(commands);
}

static void semaphore_stage(void) {
    VkSemaphore semaphore = create_semaphore(VK_SEMAPHORE_TYPE_BINARY);
    VkCommandBuffer first = begin(0), second = begin(0);
    copy_words(first, 2, 0, 0, 64);
    dispatch(second, 0);
    submit_to(0, first, VK_NULL_HANDLE, 0, 0, semaphore, 0, VK_NULL_HANDLE);
    submit_to(0, second, semaphore, 0, is_wrong ? COPY : COMPUTE, VK_NULL_HANDLE, 0, VK_NULL_HANDLE);
}

static void timeline_value(void) {
    VkSemaphore semaphore = create_semaphore(VK_SEMAPHORE_TYPE_TIMELINE);
    VkCommandBuffer first = begin(0), second = begin(0), third = begin(0);
    copy_words(first, 2, 3, 0, 64);
    copy_words(second, 2, 0, 0, 64);
    dispatch(third, 0);
    submit_to(0, first, VK_NULL_HANDLE, 0, 0, semaphore, 5, VK_NULL_HANDLE);
    submit_to(0, second, VK_NULL_HANDLE, 0, 0, semaphore, 6, VK_NULL_HANDLE);
    submit_to(0, third, semaphore, is_wrong ? 5 : 6, COMPUTE, VK_NULL_HANDLE, 0, VK_NULL_HANDLE);
}

static void host_write(void) {
    VkFenceCreateInfo info = { VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    VkFence fence;
    CHECK(vkCreateFence(device, &info, NULL, &fence));
    VkCommandBuffer first = begin(0), second = begin(0);
    copy_words(first, 0, 3, 0, 64);
    dispatch(second, 3);
    submit_to(0, first, VK_NULL_HANDLE, 0, 0, VK_NULL_HANDLE, 0, fence);
    if (!is_wrong) CHECK(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
    contents[5] = 77;
    if (is_wrong) CHECK(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
    submit(second);
}

static void aliased_images(void) {
    VkCommandBuffer commands = begin(0);
    prepare(commands, integers, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    dispatch(commands, 1);
    barrier(commands, COMPUTE, WRITE, COPY, FROM);
    read_image(commands, integers, GENERAL, 0);
    transition(commands, alias, VK_IMAGE_ASPECT_COLOR_BIT, is_wrong ? scopes(0, 0, CLEAR, TO) : scopes(COPY | COMPUTE, WRITE, CLEAR, TO), VK_IMAGE_LAYOUT_UNDEFINED, GENERAL, 0, 1);
    clear_colour(commands, alias);
    submit(commands);
}

static void image_ownership(void) {
    VkSemaphore semaphore = create_semaphore(VK_SEMAPHORE_TYPE_BINARY);
    VkCommandBuffer first = begin(0), second = begin(1);
    VkImageMemoryBarrier2 transfer = { VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2, NULL, CLEAR, TO, 0, 0, GENERAL, GENERAL, 0, 1, colour, { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 } };
    prepare(first, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    clear_colour(first, colour);
    depend(first, (VkDependencyInfo){ .imageMemoryBarrierCount = 1, .pImageMemoryBarriers = &transfer });
    transfer.srcStageMask = transfer.srcAccessMask = 0;
    transfer.dstStageMask = COPY;
    transfer.dstAccessMask = FROM;
    if (!is_wrong) depend(second, (VkDependencyInfo){ .imageMemoryBarrierCount = 1, .pImageMemoryBarriers = &transfer });
    read_image(second, colour, GENERAL, 0);
    submit_to(0, first, VK_NULL_HANDLE, 0, 0, semaphore, 0, VK_NULL_HANDLE);
    submit_to(1, second, semaphore, 0, COPY, VK_NULL_HANDLE, 0, VK_NULL_HANDLE);
}

static void subpass_input(void) {
    VkSubpassDependency dependency = { 0, 1, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT,
        VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_ACCESS_INPUT_ATTACHMENT_READ_BIT, VK_DEPENDENCY_BY_REGION_BIT };
    VkRenderPass pass = create_pass(VK_ATTACHMENT_LOAD_OP_CLEAR, GENERAL, GENERAL, 2, is_wrong ? 0 : 1, &dependency);
    VkImageView view = create_view(alias, VK_FORMAT_R8G8B8A8_UNORM, VK_IMAGE_ASPECT_COLOR_BIT);
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    prepare(commands, alias, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    begin_pass(commands, pass, 2, view);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, create_draw(pass, 0, "0.spv.frag0", 0));
    vkCmdDraw(commands, 3, 1, 0, 0);
    vkCmdNextSubpass(commands, VK_SUBPASS_CONTENTS_INLINE);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, create_draw(pass, 1, "0.spv.frag1", 0));
    vkCmdDraw(commands, 3, 1, 0, 0);
    vkCmdEndRenderPass(commands);
    submit(commands);
}

static void pass_load(void) {
    VkSubpassDependency dependency = { VK_SUBPASS_EXTERNAL, 0, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
        VK_ACCESS_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, 0 };
    VkRenderPass pass = create_pass(VK_ATTACHMENT_LOAD_OP_LOAD, GENERAL, GENERAL, 1, is_wrong ? 0 : 1, &dependency);
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    clear_colour(commands, colour);
    begin_pass(commands, pass, 1, VK_NULL_HANDLE);
    vkCmdEndRenderPass(commands);
    submit(commands);
}

/* The pass leaves its attachment in another layout, which a copy needs. */
static void final_layout(void) {
    VkSubpassDependency dependency = { 0, VK_SUBPASS_EXTERNAL, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
        VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT, 0 };
    VkRenderPass pass = create_pass(VK_ATTACHMENT_LOAD_OP_CLEAR, GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, 1, is_wrong ? 0 : 1, &dependency);
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    begin_pass(commands, pass, 1, VK_NULL_HANDLE);
    vkCmdEndRenderPass(commands);
    barrier(commands, OUTPUT, DRAWN, COPY, FROM);
    read_image(commands, colour, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, 0);
    submit(commands);
}

/* The pass changes the layout of what an earlier copy reads. */
static void initial_layout(void) {
    VkSubpassDependency dependency = { VK_SUBPASS_EXTERNAL, 0, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, 0,
        VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, 0 };
    VkRenderPass pass = create_pass(VK_ATTACHMENT_LOAD_OP_CLEAR, VK_IMAGE_LAYOUT_UNDEFINED, GENERAL, 1, is_wrong ? 0 : 1, &dependency);
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    read_image(commands, colour, GENERAL, 0);
    /* Orders the attachment's accesses, not the transition, which no dependency puts into a scope. */
    barrier(commands, COPY, 0, OUTPUT, DRAWN);
    begin_pass(commands, pass, 1, VK_NULL_HANDLE);
    vkCmdEndRenderPass(commands);
    submit(commands);
}

static void indirect_draw(void) {
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    dispatch(commands, 4);
    barrier(commands, COMPUTE, WRITE, is_wrong ? VK_PIPELINE_STAGE_2_VERTEX_INPUT_BIT : INDIRECT, VK_ACCESS_2_INDIRECT_COMMAND_READ_BIT * !is_wrong);
    begin_rendering(commands, 0);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, create_draw(VK_NULL_HANDLE, 0, "0.spv.frag0", 0));
    vkCmdDrawIndirect(commands, buffers[1], 0, 1, 16);
    vkCmdEndRendering(commands);
    submit(commands);
}

static void rendered_image(void) {
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    begin_rendering(commands, 0);
    vkCmdEndRendering(commands);
    barrier(commands, OUTPUT, is_wrong ? LOADED : DRAWN, COMPUTE, SAMPLED);
    dispatch(commands, 2);
    submit(commands);
}

static void depth_copy(void) {
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    prepare(commands, depth, VK_IMAGE_ASPECT_DEPTH_BIT, 1);
    begin_rendering(commands, 1);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, create_draw(VK_NULL_HANDLE, 0, "0.spv.frag0", 1));
    vkCmdDraw(commands, 3, 1, 0, 0);
    vkCmdEndRendering(commands);
    barrier(commands, is_wrong ? VK_PIPELINE_STAGE_2_EARLY_FRAGMENT_TESTS_BIT : TESTS, DEPTH, COPY, FROM);
    VkBufferImageCopy region = texels(VK_IMAGE_ASPECT_DEPTH_BIT, 0);
    vkCmdCopyImageToBuffer(commands, depth, GENERAL, buffers[2], 1, &region);
    submit(commands);
}

/* The image has another layout than the copy expects. */
static void layout_other(void) {
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    clear_colour(commands, colour);
    if (is_wrong) barrier(commands, CLEAR, TO, COPY, FROM);
    else transition(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, scopes(CLEAR, TO, COPY, FROM), GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, 0, 1);
    read_image(commands, colour, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, 0);
    submit(commands);
}

static void layout_missing(void) {
    VkCommandBuffer commands = begin(0);
    if (!is_wrong) prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    clear_colour(commands, colour);
    submit(commands);
}

static void layout_discarded(void) {
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    clear_colour(commands, colour);
    transition(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, scopes(CLEAR, TO, COPY, FROM), is_wrong ? VK_IMAGE_LAYOUT_UNDEFINED : GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, 0, 1);
    read_image(commands, colour, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, 0);
    submit(commands);
}

/* Copies to a quarter of an image, and from another one. */
static void image_quarters(void) {
    VkBufferImageCopy region = texels(VK_IMAGE_ASPECT_COLOR_BIT, 0);
    region.imageExtent = (VkExtent3D){ 2, 2, 1 };
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    vkCmdCopyBufferToImage(commands, buffers[0], colour, GENERAL, 1, &region);
    region.imageOffset = (VkOffset3D){ is_wrong ? 1 : 2, 1, 0 };
    vkCmdCopyImageToBuffer(commands, colour, GENERAL, buffers[2], 1, &region);
    submit(commands);
}

/* The second subpass loads an attachment that the first one does not use. */
static void second_subpass(void) {
    VkSubpassDependency dependencies[2] = { { 0, 1, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT,
            VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_ACCESS_INPUT_ATTACHMENT_READ_BIT, VK_DEPENDENCY_BY_REGION_BIT },
        { VK_SUBPASS_EXTERNAL, 1, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_ACCESS_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, 0 } };
    VkRenderPass pass = create_pass(VK_ATTACHMENT_LOAD_OP_CLEAR, GENERAL, GENERAL, 2, is_wrong ? 1 : 2, dependencies);
    VkImageView view = create_view(alias, VK_FORMAT_R8G8B8A8_UNORM, VK_IMAGE_ASPECT_COLOR_BIT);
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    prepare(commands, alias, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    clear_colour(commands, alias);
    begin_pass(commands, pass, 2, view);
    vkCmdNextSubpass(commands, VK_SUBPASS_CONTENTS_INLINE);
    vkCmdEndRenderPass(commands);
    submit(commands);
}

static VkEvent create_event(void) {
    VkEventCreateInfo info = { VK_STRUCTURE_TYPE_EVENT_CREATE_INFO };
    VkEvent event;
    CHECK(vkCreateEvent(device, &info, NULL, &event));
    return event;
}

/* The copy waits until the host signals: what the host writes before is no hazard. */
static void host_event(void) {
    VkEvent event = create_event();
    VkMemoryBarrier memory_barrier = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_HOST_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT };
    VkCommandBuffer commands = begin(0);
    vkCmdWaitEvents(commands, 1, &event, VK_PIPELINE_STAGE_HOST_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 1, &memory_barrier, 0, NULL, 0, NULL);
    copy_words(commands, 3, 2, 0, 64);
    submit(commands);
    if (is_wrong) CHECK(vkSetEvent(device, event));
    contents[3 * SLOT / 4 + 3] = 4711;
    if (!is_wrong) CHECK(vkSetEvent(device, event));
}

static void host_signal(void) {
    VkSemaphore semaphore = create_semaphore(VK_SEMAPHORE_TYPE_TIMELINE);
    VkSemaphoreSignalInfo signal = { VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, NULL, semaphore, 1 };
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 3, 2, 0, 64);
    submit_to(0, commands, semaphore, 1, COPY, VK_NULL_HANDLE, 0, VK_NULL_HANDLE);
    if (is_wrong) CHECK(vkSignalSemaphore(device, &signal));
    contents[3 * SLOT / 4 + 3] = 4711;
    if (!is_wrong) CHECK(vkSignalSemaphore(device, &signal));
}

static void event_place(void) {
    VkEvent event = create_event();
    VkMemoryBarrier memory_barrier = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT };
    VkCommandBuffer commands = begin(0);
    dispatch(commands, 0);
    vkCmdSetEvent(commands, event, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    if (is_wrong) copy_words(commands, 1, 2, 0, 64);
    vkCmdWaitEvents(commands, 1, &event, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 1, &memory_barrier, 0, NULL, 0, NULL);
    if (!is_wrong) copy_words(commands, 1, 2, 0, 64);
    submit(commands);
}

/* A dispatch between the halves of a split barrier is in neither scope. */
static void split_barrier(void) {
    VkEvent event = create_event();
    VkMemoryBarrier2 memory_barrier = scopes(COPY, TO, COMPUTE, READ);
    VkDependencyInfo info = { VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .memoryBarrierCount = 1, .pMemoryBarriers = &memory_barrier };
    VkCommandBuffer commands = begin(0);
    if (!is_wrong) copy_words(commands, 2, 0, 0, 64);
    vkCmdSetEvent2(commands, event, &info);
    if (is_wrong) copy_words(commands, 2, 0, 0, 64);
    copy_words(commands, 2, 3, 0, 64);
    vkCmdWaitEvents2(commands, 1, &event, &info);
    dispatch(commands, 0);
    submit(commands);
}

static void query_results(void) { /* Times are not among the words that the program prints. */
    VkQueryPoolCreateInfo info = { VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = 2 };
    VkQueryPool pool;
    CHECK(vkCreateQueryPool(device, &info, NULL, &pool));
    VkCommandBuffer commands = begin(0);
    vkCmdResetQueryPool(commands, pool, 0, 2);
    vkCmdWriteTimestamp2(commands, ANYTHING, pool, 0);
    vkCmdWriteTimestamp2(commands, ANYTHING, pool, 1);
    vkCmdCopyQueryPoolResults(commands, pool, 0, 2, buffers[1], 16, 8, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    if (!is_wrong) barrier(commands, COPY, TO, COPY, FROM);
    copy_words(commands, 1, 2, 24, 8);
    submit(commands);
}

/* The transition of an image writes the memory of another one, which a copy reads. */
static void aliased_transition(void) {
    VkCommandBuffer commands = begin(0);
    prepare(commands, integers, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    read_image(commands, integers, GENERAL, 0);
    transition(commands, alias, VK_IMAGE_ASPECT_COLOR_BIT, scopes(is_wrong ? 0 : COPY, 0, CLEAR, TO), VK_IMAGE_LAYOUT_UNDEFINED, GENERAL, 0, 1);
    barrier(commands, COPY, 0, CLEAR, TO);
    clear_colour(commands, alias);
    submit(commands);
}

/* What a dispatch writes depends on a buffer, which is written between the dispatches in the wrong form. */
static void deciding_contents(void) {
    VkCommandBuffer commands = begin(0);
    for (int i = 0; i < 3; i++) {
        dispatch(commands, 5);
        barrier(commands, COMPUTE, READ | WRITE, COMPUTE | COPY, READ | WRITE | TO);
        if (is_wrong) copy_words(commands, 2, 0, 0, 4);
        barrier(commands, COPY, TO, COMPUTE, READ);
    }
    submit(commands);
}

/* The same in several submissions. A buffer that is destroyed had the memory of all others; what a dispatch writes is seen as a write of the
 * host, and is no write to what decides. */
static void reused_memory(void) {
    VkBufferCreateInfo info = { VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = BUFFERS * SLOT, .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT };
    VkBuffer old;
    CHECK(vkCreateBuffer(device, &info, NULL, &old));
    VkMemoryRequirements needed;
    vkGetBufferMemoryRequirements(device, old, &needed);
    CHECK(vkBindBufferMemory(device, old, memory, 0));
    vkDestroyBuffer(device, old, NULL);
    for (int i = 0; i < 4; i++) {
        VkCommandBuffer commands = begin(0);
        dispatch(commands, 5);
        barrier(commands, COMPUTE, READ | WRITE, COPY, READ | WRITE | TO);
        if (is_wrong) copy_words(commands, 2, 0, 0, 4);
        submit(commands);
        CHECK(vkDeviceWaitIdle(device));
    }
}

/* Two dispatches in secondary command buffers. */
static void secondary_commands(void) {
    VkCommandBufferAllocateInfo info = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pools[0], .level = VK_COMMAND_BUFFER_LEVEL_SECONDARY, .commandBufferCount = 2 };
    VkCommandBuffer commands = begin(0), secondary[2];
    CHECK(vkAllocateCommandBuffers(device, &info, secondary));
    for (int i = 0; i < 2; i++) {
        VkCommandBufferInheritanceInfo inherited = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO };
        VkCommandBufferBeginInfo begin_info = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .pInheritanceInfo = &inherited };
        CHECK(vkBeginCommandBuffer(secondary[i], &begin_info));
        vkCmdBindDescriptorSets(secondary[i], VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, NULL);
        if (i == 0) copy_words(secondary[i], 2, 0, 0, 64);
        else dispatch(secondary[i], 0);
        if (i == 0) barrier(secondary[i], COPY, TO, is_wrong ? COPY : COMPUTE, READ * !is_wrong);
        CHECK(vkEndCommandBuffer(secondary[i]));
    }
    vkCmdExecuteCommands(commands, 2, secondary);
    submit(commands);
}

#include "more_sequences.h"

#include "subpass_sequences.h"

#include "family_sequences.h"

#include "host_sequences.h"

static const struct { const char *name; void (*run)(void); } PROGRAMS[] = { { "mip-levels", mip_levels }, { "mip-chain", mip_chain }, { "barrier-range", barrier_range },
    { "uniform-read", uniform_read }, { "clear-stage", clear_stage }, { "semaphore-stage", semaphore_stage }, { "timeline-value", timeline_value }, { "host-write", host_write },
    { "aliased-images", aliased_images }, { "queues-image", image_ownership }, { "subpass-input", subpass_input }, { "pass-load", pass_load },
    { "final-layout", final_layout }, { "initial-layout", initial_layout }, { "indirect-draw", indirect_draw }, { "rendered-image", rendered_image },
    { "depth-copy", depth_copy }, { "event-place", event_place }, { "split-barrier", split_barrier }, { "query-results", query_results },
    { "secondary-commands", secondary_commands }, { "aliased-transition", aliased_transition }, { "deciding-contents", deciding_contents },
    { "reused-memory", reused_memory }, { "layout-other", layout_other }, { "layout-missing", layout_missing }, { "layout-discarded", layout_discarded },
    { "image-quarters", image_quarters }, { "second-subpass", second_subpass }, { "host-event", host_event }, { "host-signal", host_signal }, MORE_PROGRAMS, SUBPASS_PROGRAMS,
    FAMILY_PROGRAMS, HOST_PROGRAMS };

static void create_device(int has_families, int is_incoherent, int has_surface) {
    VkApplicationInfo application = { VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3 };
    VkInstanceCreateInfo instance_info = { VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application,
        .enabledExtensionCount = has_surface ? 2 : 0, .ppEnabledExtensionNames = (const char *[]){ "VK_KHR_surface", "VK_EXT_headless_surface" } };
    if (vkCreateInstance(&instance_info, NULL, &instance) != VK_SUCCESS) exit(UNSUPPORTED);
    uint32_t one = 1;
    if (vkEnumeratePhysicalDevices(instance, &one, &physical) < 0 || one == 0) exit(3);
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(physical, &properties);
    if (properties.apiVersion < VK_API_VERSION_1_3) exit(UNSUPPORTED);
    VkPhysicalDeviceVulkan13Features newer = { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, .synchronization2 = VK_TRUE, .dynamicRendering = VK_TRUE };
    VkPhysicalDeviceSeparateDepthStencilLayoutsFeatures aspects = { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SEPARATE_DEPTH_STENCIL_LAYOUTS_FEATURES, &newer, VK_TRUE };
    VkPhysicalDeviceTimelineSemaphoreFeatures timelines = { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, &aspects, VK_TRUE };
    float priority = 1;
    VkDeviceQueueCreateInfo queue_infos[2] = { { VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority },
        { VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueFamilyIndex = 1, .queueCount = 1, .pQueuePriorities = &priority } };
    VkPhysicalDeviceFeatures features = { .vertexPipelineStoresAndAtomics = VK_TRUE };
    VkDeviceCreateInfo device_info = { VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &timelines, .pEnabledFeatures = &features, .queueCreateInfoCount = has_families ? 2 : 1, .pQueueCreateInfos = queue_infos,
        .enabledExtensionCount = has_surface ? 1 : 0, .ppEnabledExtensionNames = (const char *[]){ "VK_KHR_swapchain" } };
    CHECK(vkCreateDevice(physical, &device_info, NULL, &device));
    for (uint32_t family = 0; family < (has_families ? 2u : 1u); family++) {
        vkGetDeviceQueue(device, family, 0, &queues[family]);
        VkCommandPoolCreateInfo pool_info = { VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = family };
        CHECK(vkCreateCommandPool(device, &pool_info, NULL, &pools[family]));
    }
    VkPhysicalDeviceMemoryProperties memories;
    vkGetPhysicalDeviceMemoryProperties(physical, &memories);
    uint32_t type = 0, kinds = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t wanted = is_incoherent ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT : kinds;
    while (type < memories.memoryTypeCount && (memories.memoryTypes[type].propertyFlags & kinds) != wanted) type++;
    if (type == memories.memoryTypeCount) exit(UNSUPPORTED);
    VkMemoryAllocateInfo memory_info = { VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, NULL, 16 * SLOT, type };
    CHECK(vkAllocateMemory(device, &memory_info, NULL, &memory));
    CHECK(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&contents));
    for (uint32_t i = 0; i < BUFFERS; i++) {
        VkBufferCreateInfo info = { VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = BYTES, .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT
            | VK_BUFFER_USAGE_INDEX_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT };
        CHECK(vkCreateBuffer(device, &info, NULL, &buffers[i]));
        VkMemoryRequirements needed;
        vkGetBufferMemoryRequirements(device, buffers[i], &needed);
        CHECK(vkBindBufferMemory(device, buffers[i], memory, i * SLOT));
        for (uint32_t word = 0; word < WORDS; word++) contents[i * SLOT / 4 + word] = 100 * i + word;
    }
    flush(0, VK_WHOLE_SIZE);
    VkImageUsageFlags drawn = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_INPUT_ATTACHMENT_BIT | VK_IMAGE_USAGE_SAMPLED_BIT;
    colour = create_image(VK_FORMAT_R8G8B8A8_UNORM, drawn, 1, 0);
    mips = create_image(VK_FORMAT_R8G8B8A8_UNORM, drawn, 3, 0);
    depth = create_image(VK_FORMAT_D32_SFLOAT, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT, 1, 0);
    integers = create_image(VK_FORMAT_R32_UINT, VK_IMAGE_USAGE_STORAGE_BIT, 1, 12);
    alias = create_image(VK_FORMAT_R8G8B8A8_UNORM, drawn, 1, 12);
    colour_view = create_view(colour, VK_FORMAT_R8G8B8A8_UNORM, VK_IMAGE_ASPECT_COLOR_BIT);
    depth_view = create_view(depth, VK_FORMAT_D32_SFLOAT, VK_IMAGE_ASPECT_DEPTH_BIT);
}

static void create_descriptors(void) {
    static const VkDescriptorType TYPES[6] = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
        VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, VK_DESCRIPTOR_TYPE_INPUT_ATTACHMENT };
    VkDescriptorSetLayoutBinding bindings[6];
    VkDescriptorPoolSize sizes[6];
    for (uint32_t i = 0; i < 6; i++) {
        bindings[i] = (VkDescriptorSetLayoutBinding){ i, TYPES[i], 1, i == 5 ? VK_SHADER_STAGE_FRAGMENT_BIT : VK_SHADER_STAGE_COMPUTE_BIT | VK_SHADER_STAGE_VERTEX_BIT, NULL };
        sizes[i] = (VkDescriptorPoolSize){ TYPES[i], 1 };
    }
    VkDescriptorSetLayoutCreateInfo layout_info = { VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 6, .pBindings = bindings };
    VkDescriptorSetLayout set_layout;
    CHECK(vkCreateDescriptorSetLayout(device, &layout_info, NULL, &set_layout));
    VkDescriptorPoolCreateInfo pool_info = { VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 6, .pPoolSizes = sizes };
    VkDescriptorPool pool;
    CHECK(vkCreateDescriptorPool(device, &pool_info, NULL, &pool));
    VkDescriptorSetAllocateInfo set_info = { VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, NULL, pool, 1, &set_layout };
    CHECK(vkAllocateDescriptorSets(device, &set_info, &set));
    VkSamplerCreateInfo sampler_info = { VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO };
    VkSampler sampler;
    CHECK(vkCreateSampler(device, &sampler_info, NULL, &sampler));
    VkDescriptorBufferInfo ranges[6] = { { buffers[0], 0, VK_WHOLE_SIZE }, { 0 }, { 0 }, { buffers[3], 0, VK_WHOLE_SIZE }, { buffers[1], 0, VK_WHOLE_SIZE }, { 0 } };
    VkDescriptorImageInfo images[6] = { { 0 }, { VK_NULL_HANDLE, create_view(integers, VK_FORMAT_R32_UINT, VK_IMAGE_ASPECT_COLOR_BIT), GENERAL }, { sampler, colour_view, GENERAL },
        { 0 }, { 0 }, { VK_NULL_HANDLE, colour_view, GENERAL } };
    for (uint32_t i = 0; i < 6; i++) {
        VkWriteDescriptorSet write = { VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, NULL, set, i, 0, 1, TYPES[i], &images[i], &ranges[i], NULL };
        vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    }
    VkPipelineLayoutCreateInfo pipeline_layout_info = { VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &set_layout };
    CHECK(vkCreatePipelineLayout(device, &pipeline_layout_info, NULL, &layout));
    for (int mode = 0; mode < MODES; mode++) {
        char suffix[8];
        snprintf(suffix, sizeof suffix, "%d.spv", mode);
        VkComputePipelineCreateInfo info = { VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = layout,
            .stage = { VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT, .module = load_module(suffix), .pName = "main" } };
        CHECK(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &pipelines[mode]));
    }
}

int main(int count, char **arguments) {
    if (count != 4) return 3;
    first_module = arguments[1];
    is_wrong = strcmp(arguments[3], "wrong") == 0;
    create_device(strncmp(arguments[2], "queues", 6) == 0, strncmp(arguments[2], "incoherent", 10) == 0,
                  strncmp(arguments[2], "present", 7) == 0);
    create_descriptors();
    for (size_t i = 0; i < sizeof PROGRAMS / sizeof *PROGRAMS; i++)
        if (strcmp(PROGRAMS[i].name, arguments[2]) == 0) {
            PROGRAMS[i].run();
            CHECK(vkDeviceWaitIdle(device));
            if (!is_read) show_to_host();
            for (int buffer = 0; buffer < BUFFERS; buffer++) printf("%u ", contents[buffer * SLOT / 4 + 1]);
            printf("\n");
            return 0;
        }
    return 3;
}
