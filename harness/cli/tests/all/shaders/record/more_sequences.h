/* More programs of sequences.c. */

#define EARLY VK_PIPELINE_STAGE_2_EARLY_FRAGMENT_TESTS_BIT
#define LATE VK_PIPELINE_STAGE_2_LATE_FRAGMENT_TESTS_BIT
#define TOP VK_PIPELINE_STAGE_2_TOP_OF_PIPE_BIT
#define BOTTOM VK_PIPELINE_STAGE_2_BOTTOM_OF_PIPE_BIT
#define BOTH_ASPECTS (VK_IMAGE_ASPECT_DEPTH_BIT | VK_IMAGE_ASPECT_STENCIL_BIT)
#define STENCIL VK_IMAGE_ASPECT_STENCIL_BIT
#define COLOUR VK_IMAGE_ASPECT_COLOR_BIT
#define SOURCE VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL

static VkImage create_other(VkFormat format, uint32_t layers, VkSampleCountFlagBits samples, VkImageUsageFlags usage) {
    VkImageCreateInfo info = { VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D, .format = format, .extent = { 4, 4, 1 },
        .mipLevels = 1, .arrayLayers = layers, .samples = samples, .tiling = VK_IMAGE_TILING_OPTIMAL,
        .usage = usage | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT };
    VkImage image;
    CHECK(vkCreateImage(device, &info, NULL, &image));
    VkMemoryRequirements needed;
    vkGetImageMemoryRequirements(device, image, &needed);
    CHECK(vkBindImageMemory(device, image, memory, (VkDeviceSize)next_slot++ * SLOT));
    return image;
}

static VkFence create_fence(void) {
    VkFenceCreateInfo info = { VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    VkFence fence;
    CHECK(vkCreateFence(device, &info, NULL, &fence));
    return fence;
}

static void submit_and_wait(int queue, VkCommandBuffer commands) {
    VkFence fence = create_fence();
    submit_to(queue, commands, VK_NULL_HANDLE, 0, 0, VK_NULL_HANDLE, 0, fence);
    CHECK(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
}

/* Depth and stencil. */

static VkImage create_stencil(void) {
    return create_other(VK_FORMAT_D32_SFLOAT_S8_UINT, 1, VK_SAMPLE_COUNT_1_BIT, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT);
}

static void copy_aspect(VkCommandBuffer commands, VkImage image, VkImageAspectFlags aspect, VkImageLayout image_layout) {
    VkBufferImageCopy region = texels(aspect, 0);
    vkCmdCopyImageToBuffer(commands, image, image_layout, buffers[2], 1, &region);
}

static void stencil_copy(void) {
    VkImage image = create_stencil();
    VkBufferImageCopy region = texels(STENCIL, 0);
    VkCommandBuffer commands = begin(0);
    prepare(commands, image, BOTH_ASPECTS, 1);
    vkCmdCopyBufferToImage(commands, buffers[0], image, GENERAL, 1, &region);
    copy_aspect(commands, image, is_wrong ? STENCIL : VK_IMAGE_ASPECT_DEPTH_BIT, GENERAL);
    submit(commands);
}

static void stencil_layout(void) {
    VkImage image = create_stencil();
    VkCommandBuffer commands = begin(0);
    prepare(commands, image, BOTH_ASPECTS, 1);
    transition(commands, image, is_wrong ? VK_IMAGE_ASPECT_DEPTH_BIT : STENCIL, scopes(CLEAR, TO, COPY, FROM), GENERAL, SOURCE, 0, 1);
    copy_aspect(commands, image, STENCIL, SOURCE);
    submit(commands);
}

static void stencil_clear(void) {
    VkImage image = create_stencil();
    VkClearDepthStencilValue value = { 0.5f, 3 };
    VkImageSubresourceRange range = { is_wrong ? BOTH_ASPECTS : VK_IMAGE_ASPECT_DEPTH_BIT, 0, 1, 0, 1 };
    VkCommandBuffer commands = begin(0);
    prepare(commands, image, BOTH_ASPECTS, 1);
    vkCmdClearDepthStencilImage(commands, image, GENERAL, &value, 1, &range);
    copy_aspect(commands, image, STENCIL, GENERAL);
    submit(commands);
}

/* The stencil aspect alone is an attachment. */
static void stencil_attachment(void) {
    VkImage image = create_stencil();
    VkRenderingAttachmentInfo tested = { VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO, .imageView = create_view(image, VK_FORMAT_D32_SFLOAT_S8_UINT, BOTH_ASPECTS),
        .imageLayout = GENERAL, .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR, .storeOp = VK_ATTACHMENT_STORE_OP_STORE };
    VkRenderingInfo info = { VK_STRUCTURE_TYPE_RENDERING_INFO, NULL, 0, { { 0, 0 }, { 4, 4 } }, 1, 0, 0, NULL, NULL, &tested };
    VkCommandBuffer commands = begin(0);
    prepare(commands, image, BOTH_ASPECTS, 1);
    vkCmdBeginRendering(commands, &info);
    vkCmdEndRendering(commands);
    copy_aspect(commands, image, is_wrong ? STENCIL : VK_IMAGE_ASPECT_DEPTH_BIT, GENERAL);
    submit(commands);
}

/* Ownership of a part. Both halves of the transfer of the first or last 32 bytes of a buffer. */

static void transfer_words(VkCommandBuffer commands, int is_release, VkDeviceSize offset, VkDeviceSize size, uint32_t from, uint32_t to) {
    VkBufferMemoryBarrier2 transfer = { VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER_2, NULL, is_release ? COPY : 0, is_release ? TO : 0, is_release ? 0 : COPY,
        is_release ? 0 : FROM, from, to, buffers[1], offset, size };
    depend(commands, (VkDependencyInfo){ .bufferMemoryBarrierCount = 1, .pBufferMemoryBarriers = &transfer });
}

static void submit_in_turn(VkCommandBuffer first, VkCommandBuffer second) {
    VkSemaphore semaphore = create_semaphore(VK_SEMAPHORE_TYPE_BINARY);
    submit_to(0, first, VK_NULL_HANDLE, 0, 0, semaphore, 0, VK_NULL_HANDLE);
    submit_to(1, second, semaphore, 0, COPY, VK_NULL_HANDLE, 0, VK_NULL_HANDLE);
}

static void queues_part(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    copy_words(first, 0, 1, 0, 64);
    transfer_words(first, 1, 32, 32, 0, 1);
    transfer_words(second, 0, 32, 32, 0, 1);
    copy_words(second, 1, 2, is_wrong ? 0 : 32, is_wrong ? 64 : 32);
    submit_in_turn(first, second);
}

/* The acquired range is not the released one. */
static void queues_range(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    copy_words(first, 0, 1, 0, 64);
    transfer_words(first, 1, is_wrong ? 32 : 0, 32, 0, 1);
    transfer_words(second, 0, 0, 32, 0, 1);
    copy_words(second, 1, 2, 0, 32);
    submit_in_turn(first, second);
}

static void queues_release_early(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    if (is_wrong) transfer_words(first, 1, 0, 64, 0, 1);
    copy_words(first, 0, 1, 0, 64);
    if (!is_wrong) transfer_words(first, 1, 0, 64, 0, 1);
    transfer_words(second, 0, 0, 64, 0, 1);
    copy_words(second, 1, 2, 0, 64);
    submit_in_turn(first, second);
}

static void queues_families_swapped(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    copy_words(first, 0, 1, 0, 64);
    transfer_words(first, 1, 0, 64, 0, 1);
    transfer_words(second, 0, 0, 64, is_wrong, !is_wrong);
    copy_words(second, 1, 2, 0, 64);
    submit_in_turn(first, second);
}

/* The host waits between the queues; what it writes itself needs no transfer. */
static void queues_host_wait(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    copy_words(first, 0, 1, 0, 64);
    copy_words(first, 0, 3, 128, 64);
    if (!is_wrong) transfer_words(first, 1, 0, 64, 0, 1);
    submit_and_wait(0, first);
    for (int i = 0; i < 16; i++) contents[3 * SLOT / 4 + 32 + i] = 1000 + i;
    if (!is_wrong) transfer_words(second, 0, 0, 64, 0, 1);
    copy_words(second, 1, 2, 0, 64);
    copy_words(second, 3, 2, 128, 32);
    submit_and_wait(1, second);
}

static void queues_mip(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    VkImageMemoryBarrier2 transfer = { VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2, NULL, CLEAR, TO, 0, 0, GENERAL, GENERAL, 0, 1, mips, { COLOUR, 1, 1, 0, 1 } };
    VkClearColorValue value = { { 1, 1, 1, 1 } };
    VkImageSubresourceRange whole = { COLOUR, 0, 3, 0, 1 };
    prepare(first, mips, COLOUR, 3);
    vkCmdClearColorImage(first, mips, GENERAL, &value, 1, &whole);
    depend(first, (VkDependencyInfo){ .imageMemoryBarrierCount = 1, .pImageMemoryBarriers = &transfer });
    transfer.srcStageMask = transfer.srcAccessMask = 0;
    transfer.dstStageMask = COPY, transfer.dstAccessMask = FROM;
    depend(second, (VkDependencyInfo){ .imageMemoryBarrierCount = 1, .pImageMemoryBarriers = &transfer });
    read_image(second, mips, GENERAL, is_wrong ? 2 : 1);
    submit_in_turn(first, second);
}

/* A layout transition on the other queue needs the contents, and no transfer. */
static void queues_transition(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    prepare(first, colour, COLOUR, 1);
    clear_colour(first, colour);
    transition(second, colour, COLOUR, scopes(COPY, 0, CLEAR | COPY, TO | FROM), is_wrong ? GENERAL : VK_IMAGE_LAYOUT_UNDEFINED, is_wrong ? SOURCE : GENERAL, 0, 1);
    if (is_wrong) read_image(second, colour, SOURCE, 0);
    else clear_colour(second, colour);
    submit_in_turn(first, second);
}

static void queues_timeline(void) {
    VkSemaphore semaphore = create_semaphore(VK_SEMAPHORE_TYPE_TIMELINE);
    VkCommandBuffer first = begin(0), second = begin(1);
    copy_words(first, 0, 1, 0, 64);
    transfer_words(first, 1, 0, 64, 0, 1);
    transfer_words(second, 0, 0, 64, 0, 1);
    copy_words(second, 1, 2, 0, 64);
    submit_to(0, begin(0), VK_NULL_HANDLE, 0, 0, semaphore, 1, VK_NULL_HANDLE);
    submit_to(0, first, VK_NULL_HANDLE, 0, 0, semaphore, 2, VK_NULL_HANDLE);
    submit_to(1, second, semaphore, is_wrong ? 1 : 2, COPY, VK_NULL_HANDLE, 0, VK_NULL_HANDLE);
}

/* Memory that is not coherent. */

static void write_slot(uint32_t slot) {
    for (int i = 0; i < 16; i++) contents[slot * SLOT / 4 + i] = 5000 + i;
}

static void incoherent_write(void) {
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 3, 2, 0, 64);
    write_slot(3);
    if (!is_wrong) flush(3, 256);
    submit(commands);
}

static void incoherent_range(void) {
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 3, 2, 0, 64);
    write_slot(3);
    flush(is_wrong ? 1 : 3, 256);
    submit(commands);
}

static void incoherent_late(void) {
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 3, 2, 0, 64);
    write_slot(3);
    if (!is_wrong) flush(3, 256);
    submit(commands);
    if (is_wrong) flush(3, 256);
}

/* A command overwrites what the host did not flush. */
static void incoherent_overwritten(void) {
    VkCommandBuffer commands = begin(0);
    write_slot(3);
    if (!is_wrong) copy_words(commands, 0, 3, 0, 64);
    barrier(commands, COPY, TO, COPY, FROM);
    copy_words(commands, 3, 2, 0, 64);
    submit(commands);
}

/* Events. */

static void two_events(void) {
    VkEvent events[2] = { create_event(), create_event() };
    VkMemoryBarrier memory_barrier = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT };
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 0, 1, 0, 32);
    vkCmdSetEvent(commands, events[0], VK_PIPELINE_STAGE_TRANSFER_BIT);
    copy_words(commands, 0, 1, 32, 32);
    vkCmdSetEvent(commands, events[1], VK_PIPELINE_STAGE_TRANSFER_BIT);
    vkCmdWaitEvents(commands, is_wrong ? 1 : 2, events, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 1, &memory_barrier, 0, NULL, 0, NULL);
    copy_words(commands, 1, 2, 0, 64);
    submit(commands);
}

static void event_submissions(void) {
    VkEvent event = create_event();
    VkMemoryBarrier memory_barrier = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_SHADER_READ_BIT };
    VkCommandBuffer first = begin(0), second = begin(0);
    copy_words(first, 2, 0, 0, 64);
    vkCmdSetEvent(first, event, VK_PIPELINE_STAGE_TRANSFER_BIT);
    vkCmdWaitEvents(second, 1, &event, VK_PIPELINE_STAGE_TRANSFER_BIT,
                    is_wrong ? VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT : VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 1, &memory_barrier, 0, NULL, 0, NULL);
    dispatch(second, 0);
    submit(first);
    submit(second);
}

static void event_buffer(void) {
    VkEvent event = create_event();
    VkBufferMemoryBarrier2 part = { VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER_2, NULL, COPY, TO, COMPUTE, READ, VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED,
        buffers[is_wrong ? 1 : 0], 0, VK_WHOLE_SIZE };
    VkDependencyInfo info = { VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .bufferMemoryBarrierCount = 1, .pBufferMemoryBarriers = &part };
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 2, 0, 0, 64);
    vkCmdSetEvent2(commands, event, &info);
    vkCmdWaitEvents2(commands, 1, &event, &info);
    dispatch(commands, 0);
    submit(commands);
}

/* Render passes. */

/* Two passes draw to one attachment. */
static void two_passes(void) {
    VkSubpassDependency dependency = { 0, VK_SUBPASS_EXTERNAL, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
        VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_ACCESS_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, 0 };
    VkRenderPass first = create_pass(VK_ATTACHMENT_LOAD_OP_CLEAR, GENERAL, GENERAL, 1, is_wrong ? 0 : 1, &dependency);
    VkRenderPass second = create_pass(VK_ATTACHMENT_LOAD_OP_LOAD, GENERAL, GENERAL, 1, 0, NULL);
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, COLOUR, 1);
    begin_pass(commands, first, 1, VK_NULL_HANDLE);
    vkCmdEndRenderPass(commands);
    begin_pass(commands, second, 1, VK_NULL_HANDLE);
    vkCmdEndRenderPass(commands);
    submit(commands);
}

static void rendered_twice(void) {
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, COLOUR, 1);
    begin_rendering(commands, 0);
    vkCmdEndRendering(commands);
    if (!is_wrong) barrier(commands, OUTPUT, DRAWN, OUTPUT, DRAWN);
    begin_rendering(commands, 0);
    vkCmdEndRendering(commands);
    submit(commands);
}

static void sampled_then_drawn(void) {
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, COLOUR, 1);
    dispatch(commands, 2);
    barrier(commands, is_wrong ? VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT : COMPUTE, 0, OUTPUT, 0);
    begin_rendering(commands, 0);
    vkCmdEndRendering(commands);
    submit(commands);
}

static void drawn_layers(void) {
    VkImage image = create_other(VK_FORMAT_R8G8B8A8_UNORM, 2, VK_SAMPLE_COUNT_1_BIT, 0);
    VkBufferImageCopy region = texels(COLOUR, 0);
    VkImageMemoryBarrier2 first = { VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2, NULL, 0, 0, COPY, FROM | TO, VK_IMAGE_LAYOUT_UNDEFINED, GENERAL,
        VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, image, { COLOUR, 0, 1, 0, 2 } };
    VkCommandBuffer commands = begin(0);
    depend(commands, (VkDependencyInfo){ .imageMemoryBarrierCount = 1, .pImageMemoryBarriers = &first });
    vkCmdCopyBufferToImage(commands, buffers[0], image, GENERAL, 1, &region);
    region.imageSubresource.baseArrayLayer = is_wrong ? 0 : 1;
    vkCmdCopyImageToBuffer(commands, image, GENERAL, buffers[2], 1, &region);
    submit(commands);
}

static void resolved_image(void) {
    VkImage image = create_other(VK_FORMAT_R8G8B8A8_UNORM, 1, VK_SAMPLE_COUNT_4_BIT, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT);
    VkImageResolve region = { { COLOUR, 0, 0, 1 }, { 0 }, { COLOUR, 0, 0, 1 }, { 0 }, { 4, 4, 1 } };
    VkCommandBuffer commands = begin(0);
    prepare(commands, image, COLOUR, 1);
    prepare(commands, colour, COLOUR, 1);
    clear_colour(commands, image);
    barrier(commands, CLEAR, TO, is_wrong ? COPY : VK_PIPELINE_STAGE_2_RESOLVE_BIT, FROM);
    vkCmdResolveImage(commands, image, GENERAL, colour, GENERAL, 1, &region);
    submit(commands);
}

static void copied_image(void) {
    VkImageCopy region = { { COLOUR, 0, 0, 1 }, { 0 }, { COLOUR, 0, 0, 1 }, { 0 }, { 4, 4, 1 } };
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, COLOUR, 1);
    prepare(commands, alias, COLOUR, 1);
    clear_colour(commands, colour);
    vkCmdPipelineBarrier(commands, is_wrong ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1,
                         &(VkMemoryBarrier){ VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, is_wrong ? 0 : VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT },
                         0, NULL, 0, NULL);
    vkCmdCopyImage(commands, colour, GENERAL, alias, GENERAL, 1, &region);
    submit(commands);
}

/* Indirect dispatches, indices, updates. */

static void indirect_dispatch(void) {
    VkCommandBuffer commands = begin(0);
    dispatch(commands, 4);
    barrier(commands, COMPUTE, WRITE, is_wrong ? COMPUTE : INDIRECT, is_wrong ? READ : VK_ACCESS_2_INDIRECT_COMMAND_READ_BIT);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines[1]);
    prepare(commands, integers, COLOUR, 1);
    vkCmdDispatchIndirect(commands, buffers[1], 0);
    submit(commands);
}

static void copied_indices(void) {
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, COLOUR, 1);
    vkCmdUpdateBuffer(commands, buffers[3], 0, 12, contents);
    barrier(commands, CLEAR, TO, VK_PIPELINE_STAGE_2_INDEX_INPUT_BIT, is_wrong ? VK_ACCESS_2_VERTEX_ATTRIBUTE_READ_BIT : VK_ACCESS_2_INDEX_READ_BIT);
    begin_rendering(commands, 0);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, create_draw(VK_NULL_HANDLE, 0, "0.spv.frag0", 0));
    vkCmdBindIndexBuffer(commands, buffers[3], 0, VK_INDEX_TYPE_UINT32);
    vkCmdDrawIndexed(commands, 3, 1, 0, 0, 0);
    vkCmdEndRendering(commands);
    submit(commands);
}

static void filled_parts(void) {
    VkCommandBuffer commands = begin(0);
    vkCmdFillBuffer(commands, buffers[1], 0, 32, 1);
    vkCmdFillBuffer(commands, buffers[1], is_wrong ? 28 : 32, 32, 2);
    submit(commands);
}

static void bottom_of_pipe(void) {
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 2, 0, 0, 64);
    barrier(commands, COPY, TO, is_wrong ? BOTTOM : COMPUTE, is_wrong ? 0 : READ);
    dispatch(commands, 0);
    submit(commands);
}

/* A chain of two barriers needs a common stage. */
static void barrier_chain(void) {
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 2, 0, 0, 64);
    barrier(commands, COPY, TO, BLIT, FROM);
    barrier(commands, is_wrong ? CLEAR : BLIT, 0, COMPUTE, READ);
    dispatch(commands, 0);
    submit(commands);
}

static void old_buffer_barrier(void) {
    VkBufferMemoryBarrier part = { VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER, NULL, VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_SHADER_READ_BIT,
        VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, buffers[0], 0, is_wrong ? 32 : 64 };
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 2, 0, 0, 64);
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 0, NULL, 1, &part, 0, NULL);
    dispatch(commands, 0);
    submit(commands);
}

/* Command buffers that are executed twice. */
static void executed_twice(void) {
    VkCommandBuffer commands = begin(0);
    dispatch(commands, 0);
    barrier(commands, COMPUTE, WRITE, COPY, FROM);
    copy_words(commands, 1, 0, 0, 64);
    if (!is_wrong) barrier(commands, COPY, TO, COMPUTE, READ);
    CHECK(vkEndCommandBuffer(commands));
    VkSubmitInfo info = { VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands };
    for (int i = 0; i < 2; i++) {
        CHECK(vkQueueSubmit(queues[0], 1, &info, VK_NULL_HANDLE));
        if (!is_wrong) CHECK(vkQueueWaitIdle(queues[0]));
    }
}

static void secondary_twice(void) {
    VkCommandBufferAllocateInfo info = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pools[0], .level = VK_COMMAND_BUFFER_LEVEL_SECONDARY, .commandBufferCount = 1 };
    VkCommandBufferInheritanceInfo inherited = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO };
    VkCommandBufferBeginInfo begin_info = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, NULL, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, &inherited };
    VkCommandBuffer commands = begin(0), secondary;
    CHECK(vkAllocateCommandBuffers(device, &info, &secondary));
    CHECK(vkBeginCommandBuffer(secondary, &begin_info));
    vkCmdBindDescriptorSets(secondary, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, NULL);
    dispatch(secondary, 0);
    CHECK(vkEndCommandBuffer(secondary));
    vkCmdExecuteCommands(commands, 1, &secondary);
    barrier(commands, COMPUTE, is_wrong ? READ : WRITE, COMPUTE, WRITE);
    vkCmdExecuteCommands(commands, 1, &secondary);
    submit(commands);
}

/* Waits of the host. */

static void polled_fence(void) {
    VkFence fence = create_fence();
    VkCommandBuffer first = begin(0), second = begin(0);
    copy_words(first, 0, 3, 0, 64);
    dispatch(second, 3);
    submit_to(0, first, VK_NULL_HANDLE, 0, 0, VK_NULL_HANDLE, 0, fence);
    if (!is_wrong) while (vkGetFenceStatus(device, fence) == VK_NOT_READY) {}
    contents[5] = 77;
    while (vkGetFenceStatus(device, fence) == VK_NOT_READY) {}
    submit(second);
}

/* The host waits for one of two submissions. */
static void other_timeline(void) {
    VkSemaphore semaphore = create_semaphore(VK_SEMAPHORE_TYPE_TIMELINE);
    uint64_t value = is_wrong ? 1 : 2;
    VkSemaphoreWaitInfo info = { VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, NULL, 0, 1, &semaphore, &value };
    VkCommandBuffer first = begin(0), second = begin(0);
    copy_words(first, 2, 1, 0, 64);
    copy_words(second, 0, 3, 0, 64);
    submit_to(0, first, VK_NULL_HANDLE, 0, 0, semaphore, 1, VK_NULL_HANDLE);
    submit_to(0, second, VK_NULL_HANDLE, 0, 0, semaphore, 2, VK_NULL_HANDLE);
    CHECK(vkWaitSemaphores(device, &info, UINT64_MAX));
    contents[5] = 77;
    CHECK(vkDeviceWaitIdle(device));
}

/* The vertex shader writes 12 bytes. */
static void vertex_stores(void) {
    vertices = "0.spv.vert1";
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, COLOUR, 1);
    begin_rendering(commands, 0);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, create_draw(VK_NULL_HANDLE, 0, "0.spv.frag0", 0));
    vkCmdDraw(commands, 3, 1, 0, 0);
    vkCmdEndRendering(commands);
    copy_words(commands, 1, 2, is_wrong ? 8 : 12, 4);
    submit(commands);
}

/* A render pass in two command buffers; in the wrong form, two render passes. */
static void rendering_resumed(void) {
    VkRenderingAttachmentInfo target = { VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO, .imageView = colour_view, .imageLayout = GENERAL,
        .loadOp = VK_ATTACHMENT_LOAD_OP_LOAD, .storeOp = VK_ATTACHMENT_STORE_OP_STORE };
    VkRenderingInfo info = { VK_STRUCTURE_TYPE_RENDERING_INFO, NULL, 0, { { 0, 0 }, { 4, 4 } }, 1, 0, 1, &target, NULL, NULL };
    VkCommandBuffer commands[2] = { begin(0), begin(0) };
    prepare(commands[0], colour, COLOUR, 1);
    for (int i = 0; i < 2; i++) {
        if (!is_wrong) info.flags = i ? VK_RENDERING_RESUMING_BIT : VK_RENDERING_SUSPENDING_BIT;
        vkCmdBeginRendering(commands[i], &info);
        vkCmdEndRendering(commands[i]);
        CHECK(vkEndCommandBuffer(commands[i]));
    }
    VkSubmitInfo submission = { VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 2, .pCommandBuffers = commands };
    CHECK(vkQueueSubmit(queues[0], 1, &submission, VK_NULL_HANDLE));
}

/* The presentation of an image waits for its last command, or does not. */
static void present_image(void) {
    VkHeadlessSurfaceCreateInfoEXT surface_info = { VK_STRUCTURE_TYPE_HEADLESS_SURFACE_CREATE_INFO_EXT };
    PFN_vkCreateHeadlessSurfaceEXT create_surface = (PFN_vkCreateHeadlessSurfaceEXT)vkGetInstanceProcAddr(instance, "vkCreateHeadlessSurfaceEXT");
    VkSurfaceKHR surface;
    CHECK(create_surface(instance, &surface_info, NULL, &surface));
    VkSwapchainCreateInfoKHR info = { VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR, .surface = surface, .minImageCount = 2, .imageFormat = VK_FORMAT_B8G8R8A8_UNORM,
        .imageExtent = { 4, 4 }, .imageArrayLayers = 1, .imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT, .preTransform = VK_SURFACE_TRANSFORM_IDENTITY_BIT_KHR,
        .compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR, .presentMode = VK_PRESENT_MODE_FIFO_KHR };
    VkBool32 is_supported;
    CHECK(vkGetPhysicalDeviceSurfaceSupportKHR(physical, 0, surface, &is_supported));
    VkSwapchainKHR swapchain;
    CHECK(vkCreateSwapchainKHR(device, &info, NULL, &swapchain));
    VkImage images[8];
    uint32_t count = 8, index;
    CHECK(vkGetSwapchainImagesKHR(device, swapchain, &count, images));
    VkSemaphore acquired = create_semaphore(VK_SEMAPHORE_TYPE_BINARY), drawn = create_semaphore(VK_SEMAPHORE_TYPE_BINARY);
    CHECK(vkAcquireNextImageKHR(device, swapchain, UINT64_MAX, acquired, VK_NULL_HANDLE, &index));
    VkCommandBuffer commands = begin(0);
    transition(commands, images[index], COLOUR, scopes(CLEAR, 0, CLEAR, TO), VK_IMAGE_LAYOUT_UNDEFINED, GENERAL, 0, 1);
    clear_colour(commands, images[index]);
    transition(commands, images[index], COLOUR, scopes(CLEAR, TO, ANYTHING, 0), GENERAL, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR, 0, 1);
    submit_to(0, commands, acquired, 0, CLEAR, drawn, 0, VK_NULL_HANDLE);
    VkPresentInfoKHR present = { VK_STRUCTURE_TYPE_PRESENT_INFO_KHR, NULL, is_wrong ? 0 : 1, &drawn, 1, &swapchain, &index, NULL };
    CHECK(vkQueuePresentKHR(queues[0], &present));
}

/* Two buffers have the same memory. */
static void aliased_buffers(void) {
    VkBufferCreateInfo info = { VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = BYTES, .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT };
    VkBuffer other;
    VkMemoryRequirements needed;
    VkBufferCopy region = { 0, 0, 64 };
    CHECK(vkCreateBuffer(device, &info, NULL, &other));
    vkGetBufferMemoryRequirements(device, other, &needed);
    CHECK(vkBindBufferMemory(device, other, memory, 1 * SLOT));
    VkCommandBuffer commands = begin(0);
    dispatch(commands, 0);
    barrier(commands, COMPUTE, WRITE, COPY, is_wrong ? TO : FROM);
    vkCmdCopyBuffer(commands, other, buffers[2], 1, &region);
    submit(commands);
}

/* The host waits for one of two submissions, and writes what the second may still read. The first has ended in any case. */
static void wait_any(void) {
    VkSemaphore semaphores[2] = { create_semaphore(VK_SEMAPHORE_TYPE_TIMELINE), create_semaphore(VK_SEMAPHORE_TYPE_TIMELINE) };
    for (int i = 0; i < 2; i++) {
        VkCommandBuffer commands = begin(0);
        copy_words(commands, i ? 3 : 0, 2 - i, 0, 64);
        submit_to(0, commands, VK_NULL_HANDLE, 0, 0, semaphores[i], 1, VK_NULL_HANDLE);
    }
    uint64_t values[2] = { 1, 1 };
    VkSemaphoreWaitInfo wait = { VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, NULL, VK_SEMAPHORE_WAIT_ANY_BIT, 2, semaphores, values };
    CHECK(vkWaitSemaphores(device, &wait, UINT64_MAX));
    contents[(is_wrong ? 3 * SLOT / 4 : 0) + 3] = 4711;
}

/* A process that ends without its destructors has recorded all. */
static void ends_at_once(void) {
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 0, 1, 0, 64);
    if (!is_wrong) barrier(commands, COPY, TO, COPY, FROM);
    copy_words(commands, 1, 2, 0, 64);
    submit(commands);
    show_to_host();
    _Exit(0);
}

#define MORE_PROGRAMS { "stencil-copy", stencil_copy }, { "stencil-layout", stencil_layout }, { "stencil-clear", stencil_clear }, \
    { "stencil-attachment", stencil_attachment }, { "queues-part", queues_part }, { "queues-range", queues_range }, \
    { "queues-release-early", queues_release_early }, { "queues-families-swapped", queues_families_swapped }, { "queues-host-wait", queues_host_wait }, \
    { "queues-mip", queues_mip }, { "queues-transition", queues_transition }, { "queues-timeline", queues_timeline }, \
    { "incoherent-write", incoherent_write }, { "incoherent-range", incoherent_range }, { "incoherent-late", incoherent_late }, \
    { "incoherent-overwritten", incoherent_overwritten }, { "two-events", two_events }, { "event-submissions", event_submissions }, \
    { "event-buffer", event_buffer }, { "two-passes", two_passes }, { "rendered-twice", rendered_twice }, { "sampled-then-drawn", sampled_then_drawn }, \
    { "drawn-layers", drawn_layers }, { "resolved-image", resolved_image }, { "copied-image", copied_image }, { "indirect-dispatch", indirect_dispatch }, \
    { "copied-indices", copied_indices }, { "filled-parts", filled_parts }, { "bottom-of-pipe", bottom_of_pipe }, { "barrier-chain", barrier_chain }, \
    { "old-buffer-barrier", old_buffer_barrier }, { "executed-twice", executed_twice }, { "secondary-twice", secondary_twice }, \
    { "polled-fence", polled_fence }, { "other-timeline", other_timeline }, { "aliased-buffers", aliased_buffers }, { "vertex-stores", vertex_stores }, { "rendering-resumed", rendering_resumed }, { "present-image", present_image }, { "wait-any", wait_any }, { "ends-at-once", ends_at_once }
