/* Programs with subpasses whose attachment is `colour`: each clears it. */

/* A render pass with subpasses that write `colour` or, if a bit of `readers` is set, have it as an input attachment. */
static VkRenderPass create_chain(uint32_t subpass_count, uint32_t readers, uint32_t count, const VkSubpassDependency *dependencies) {
    VkAttachmentDescription attachment = { 0, VK_FORMAT_R8G8B8A8_UNORM, VK_SAMPLE_COUNT_1_BIT, VK_ATTACHMENT_LOAD_OP_CLEAR, VK_ATTACHMENT_STORE_OP_STORE,
        VK_ATTACHMENT_LOAD_OP_DONT_CARE, VK_ATTACHMENT_STORE_OP_DONT_CARE, GENERAL, GENERAL };
    VkAttachmentReference reference = { 0, GENERAL };
    VkSubpassDescription subpasses[3] = { 0 };
    for (uint32_t i = 0; i < subpass_count; i++) {
        subpasses[i].colorAttachmentCount = 1;
        subpasses[i].pColorAttachments = &reference;
        subpasses[i].inputAttachmentCount = readers >> i & 1;
        subpasses[i].pInputAttachments = &reference;
    }
    VkRenderPassCreateInfo info = { VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO, NULL, 0, 1, &attachment, subpass_count, subpasses, count, dependencies };
    VkRenderPass pass;
    CHECK(vkCreateRenderPass(device, &info, NULL, &pass));
    return pass;
}

static VkSubpassDependency written_colour(uint32_t from, uint32_t to) {
    return (VkSubpassDependency){ from, to, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
        VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT | VK_ACCESS_COLOR_ATTACHMENT_READ_BIT, VK_DEPENDENCY_BY_REGION_BIT };
}

static void clear_target(VkCommandBuffer commands) {
    VkClearAttachment clear = { VK_IMAGE_ASPECT_COLOR_BIT, 0, { { { 0 } } } };
    VkClearRect rectangle = { { { 0, 0 }, { 4, 4 } }, 0, 1 };
    vkCmdClearAttachments(commands, 1, &clear, 1, &rectangle);
}

/* Clears `colour` in each subpass. */
static void clear_subpasses(uint32_t subpass_count, uint32_t count, const VkSubpassDependency *dependencies) {
    VkRenderPass pass = create_chain(subpass_count, 0, count, dependencies);
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    begin_pass(commands, pass, 1, VK_NULL_HANDLE);
    for (uint32_t i = 0; i < subpass_count; i++) {
        if (i) vkCmdNextSubpass(commands, VK_SUBPASS_CONTENTS_INLINE);
        clear_target(commands);
        clear_target(commands);
    }
    vkCmdEndRenderPass(commands);
    submit(commands);
}

static void subpass_output(void) {
    VkSubpassDependency dependency = written_colour(0, 1);
    clear_subpasses(2, is_wrong ? 0 : 1, &dependency);
}

/* The dependencies lead from the first subpass to both others. */
static void subpass_chain(void) {
    VkSubpassDependency dependencies[2] = { written_colour(0, 1), written_colour(is_wrong ? 0 : 1, 2) };
    clear_subpasses(3, 2, dependencies);
}

/* A dependency orders the commands of its second subpass, and not those of the one after it. */
static void subpass_later(void) {
    VkSubpassDependency dependencies[2] = { written_colour(0, 1), written_colour(1, 2) };
    clear_subpasses(3, is_wrong ? 1 : 2, dependencies);
}

/* A draw reads what an earlier one of its subpass writes. */
static void subpass_self(void) {
    VkSubpassDependency dependency = { 0, 0, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT, VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT,
        VK_ACCESS_INPUT_ATTACHMENT_READ_BIT, VK_DEPENDENCY_BY_REGION_BIT };
    VkRenderPass pass = create_chain(1, 1, 1, &dependency);
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    begin_pass(commands, pass, 1, VK_NULL_HANDLE);
    clear_target(commands);
    VkMemoryBarrier written = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, dependency.srcAccessMask, dependency.dstAccessMask };
    if (!is_wrong)
        vkCmdPipelineBarrier(commands, dependency.srcStageMask, dependency.dstStageMask, VK_DEPENDENCY_BY_REGION_BIT, 1, &written, 0, NULL, 0, NULL);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, create_draw(pass, 0, "0.spv.frag1", 0));
    vkCmdDraw(commands, 3, 1, 0, 0);
    vkCmdEndRenderPass(commands);
    submit(commands);
}

/* A copy after the pass reads what a subpass wrote; the dependency is one of the other subpass. */
static void subpass_copied(void) {
    VkSubpassDependency dependencies[2] = { written_colour(0, 1), { is_wrong ? 0 : 1, VK_SUBPASS_EXTERNAL, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
        VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT, 0 } };
    VkRenderPass pass = create_chain(2, 0, 2, dependencies);
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    begin_pass(commands, pass, 1, VK_NULL_HANDLE);
    vkCmdNextSubpass(commands, VK_SUBPASS_CONTENTS_INLINE);
    vkCmdEndRenderPass(commands);
    read_image(commands, colour, GENERAL, 0);
    submit(commands);
}

/* A wait in a subpass orders what was before the signal of its event, outside of the pass. */
static void subpass_event(void) {
    vertices = "0.spv.vert1";
    VkEvent event = create_event();
    VkRenderPass pass = create_chain(1, 0, 0, NULL);
    VkMemoryBarrier copied = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_SHADER_WRITE_BIT };
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, VK_IMAGE_ASPECT_COLOR_BIT, 1);
    copy_words(commands, 0, 1, 0, 64);
    vkCmdSetEvent(commands, event, VK_PIPELINE_STAGE_TRANSFER_BIT);
    begin_pass(commands, pass, 1, VK_NULL_HANDLE);
    if (!is_wrong)
        vkCmdWaitEvents(commands, 1, &event, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_VERTEX_SHADER_BIT, 1, &copied, 0, NULL, 0, NULL);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, create_draw(pass, 0, "0.spv.frag0", 0));
    vkCmdDraw(commands, 3, 1, 0, 0);
    vkCmdEndRenderPass(commands);
    submit(commands);
}

/* A render pass loads and stores depth. */
static void depth_loaded(void) {
    VkRenderingAttachmentInfo tested = { VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO, .imageView = depth_view, .imageLayout = GENERAL,
        .loadOp = VK_ATTACHMENT_LOAD_OP_LOAD, .storeOp = VK_ATTACHMENT_STORE_OP_STORE };
    VkRenderingInfo info = { VK_STRUCTURE_TYPE_RENDERING_INFO, NULL, 0, { { 0, 0 }, { 4, 4 } }, 1, 0, 0, NULL, &tested, NULL };
    VkCommandBuffer commands = begin(0);
    prepare(commands, depth, VK_IMAGE_ASPECT_DEPTH_BIT, 1);
    vkCmdBeginRendering(commands, &info);
    vkCmdEndRendering(commands);
    if (!is_wrong) barrier(commands, TESTS, DEPTH, COPY, FROM);
    copy_aspect(commands, depth, VK_IMAGE_ASPECT_DEPTH_BIT, GENERAL);
    submit(commands);
}

/* A render pass of one layer, whose view has two. */
static void pass_layers(void) {
    VkImage image = create_other(VK_FORMAT_R8G8B8A8_UNORM, 2, VK_SAMPLE_COUNT_1_BIT, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT);
    VkImageViewCreateInfo view_info = { VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO, .image = image, .viewType = VK_IMAGE_VIEW_TYPE_2D_ARRAY,
        .format = VK_FORMAT_R8G8B8A8_UNORM, .subresourceRange = { COLOUR, 0, 1, 0, VK_REMAINING_ARRAY_LAYERS } };
    VkRenderingAttachmentInfo target = { VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO, .imageLayout = GENERAL, .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
        .storeOp = VK_ATTACHMENT_STORE_OP_STORE };
    VkRenderingInfo info = { VK_STRUCTURE_TYPE_RENDERING_INFO, NULL, 0, { { 0, 0 }, { 4, 4 } }, is_wrong ? 2 : 1, 0, 1, &target, NULL, NULL };
    VkImageMemoryBarrier2 first = { VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2, NULL, 0, 0, COPY | OUTPUT, FROM | DRAWN, VK_IMAGE_LAYOUT_UNDEFINED, GENERAL,
        VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, image, { COLOUR, 0, 1, 0, 2 } };
    VkBufferImageCopy region = texels(COLOUR, 0);
    VkCommandBuffer commands = begin(0);
    CHECK(vkCreateImageView(device, &view_info, NULL, &target.imageView));
    region.imageSubresource.baseArrayLayer = 1;
    depend(commands, (VkDependencyInfo){ .imageMemoryBarrierCount = 1, .pImageMemoryBarriers = &first });
    vkCmdBeginRendering(commands, &info);
    vkCmdEndRendering(commands);
    vkCmdCopyImageToBuffer(commands, image, GENERAL, buffers[2], 1, &region);
    submit(commands);
}

#define SUBPASS_PROGRAMS { "subpass-output", subpass_output }, { "subpass-chain", subpass_chain }, { "subpass-later", subpass_later }, \
    { "subpass-self", subpass_self }, { "subpass-copied", subpass_copied }, { "subpass-event", subpass_event }, \
    { "depth-loaded", depth_loaded }, { "pass-layers", pass_layers }
