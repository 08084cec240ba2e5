/* Programs whose host reads what commands write, or writes what they read. */

/* The host reads what a copy wrote. */
static void copy_for_host(void) {
    is_read = 1;
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 0, 1, 64, 64);
    if (!is_wrong) barrier(commands, COPY, TO, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
    submit(commands);
    CHECK(vkDeviceWaitIdle(device));
}

static void host_invalidate(void) {
    copy_for_host();
    VkMappedMemoryRange range = { VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, NULL, memory, 1 * SLOT, SLOT };
    CHECK(vkInvalidateMappedMemoryRanges(device, 1, &range));
}

/* The host invalidates before it waits. */
static void host_early(void) {
    VkMappedMemoryRange range = { VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, NULL, memory, 1 * SLOT, SLOT };
    VkCommandBuffer commands = begin(0);
    copy_words(commands, 0, 1, 64, 64);
    barrier(commands, COPY, TO, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
    submit(commands);
    if (!is_wrong) CHECK(vkDeviceWaitIdle(device));
    CHECK(vkInvalidateMappedMemoryRanges(device, 1, &range));
}

/* A buffer with memory of its own, which is not mapped. */
static VkBuffer create_result(VkDeviceMemory *result) {
    VkBufferCreateInfo info = { VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = BYTES, .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT };
    VkBuffer buffer;
    VkMemoryRequirements needed;
    CHECK(vkCreateBuffer(device, &info, NULL, &buffer));
    vkGetBufferMemoryRequirements(device, buffer, &needed);
    VkMemoryAllocateInfo memory_info = { VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, NULL, needed.size, 0 };
    CHECK(vkAllocateMemory(device, &memory_info, NULL, result));
    CHECK(vkBindBufferMemory(device, buffer, *result, 0));
    return buffer;
}

static uint32_t read_result(VkDeviceMemory result) {
    uint32_t *words;
    CHECK(vkMapMemory(device, result, 0, VK_WHOLE_SIZE, 0, (void **)&words));
    uint32_t word = words[1];
    vkUnmapMemory(device, result);
    return word;
}

static void copy_to_result(VkBuffer buffer, int is_shown) {
    VkBufferCopy region = { 0, 0, 64 };
    VkCommandBuffer commands = begin(0);
    vkCmdCopyBuffer(commands, buffers[0], buffer, 1, &region);
    if (is_shown) barrier(commands, COPY, TO, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
    submit(commands);
}

/* The host maps the memory to read it, and a later command reads it, too. */
static void mapped_read(void) {
    VkDeviceMemory result;
    VkBuffer buffer = create_result(&result);
    VkBufferCopy region = { 0, 0, 64 };
    VkCommandBuffer commands = begin(0);
    copy_to_result(buffer, !is_wrong);
    CHECK(vkQueueWaitIdle(queues[0]));
    printf("%u ", read_result(result));
    vkCmdCopyBuffer(commands, buffer, buffers[3], 1, &region);
    submit(commands);
}

/* The memory stays mapped. */
static void mapped_kept(void) {
    VkDeviceMemory result;
    VkBuffer buffer = create_result(&result);
    uint32_t *words;
    CHECK(vkMapMemory(device, result, 0, VK_WHOLE_SIZE, 0, (void **)&words));
    copy_to_result(buffer, !is_wrong);
    CHECK(vkQueueWaitIdle(queues[0]));
    printf("%u ", words[1]);
    is_read = 1;
}

/* The host maps and unmaps the memory before it waits. */
static void mapped_early(void) {
    VkDeviceMemory result;
    VkBuffer buffer = create_result(&result);
    copy_to_result(buffer, 1);
    if (!is_wrong) CHECK(vkQueueWaitIdle(queues[0]));
    uint32_t word = read_result(result);
    CHECK(vkQueueWaitIdle(queues[0]));
    if (!is_wrong) printf("%u ", word);
}

/* Commands alone use what is in mapped memory. */
static void mapped_state(void) {
    is_read = 1;
    for (int i = 0; i < 3; i++) {
        VkCommandBuffer commands = begin(0);
        dispatch(commands, 0);
        if (is_wrong) barrier(commands, COMPUTE, WRITE, VK_PIPELINE_STAGE_2_HOST_BIT, 0);
        submit(commands);
        CHECK(vkQueueWaitIdle(queues[0]));
        if (is_wrong) continue;
        commands = begin(0);
        copy_words(commands, 1, 0, 0, 64);
        if (i == 1) barrier(commands, COPY, TO, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
        submit(commands);
        CHECK(vkQueueWaitIdle(queues[0]));
    }
}

/* The memory is not coherent. */
static void incoherent_read(void) {
    VkMappedMemoryRange range = { VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, NULL, memory, 1 * SLOT, SLOT };
    VkCommandBuffer commands = begin(0);
    is_read = 1;
    copy_words(commands, 0, 1, 64, 64);
    barrier(commands, COPY, TO, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
    submit(commands);
    CHECK(vkDeviceWaitIdle(device));
    if (!is_wrong) CHECK(vkInvalidateMappedMemoryRanges(device, 1, &range));
}

/* The host changes the uniform buffer of a draw that may run. */
static void host_uniform(void) {
    vertices = "0.spv.vert2";
    VkCommandBuffer commands = begin(0);
    prepare(commands, colour, COLOUR, 1);
    begin_rendering(commands, 0);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, create_draw(VK_NULL_HANDLE, 0, "0.spv.frag0", 0));
    vkCmdDraw(commands, 3, 1, 0, 0);
    vkCmdEndRendering(commands);
    submit(commands);
    if (!is_wrong) CHECK(vkQueueWaitIdle(queues[0]));
    contents[3 * SLOT / 4] = 1;
    CHECK(vkQueueWaitIdle(queues[0]));
}

#define HOST_PROGRAMS { "host-read", copy_for_host }, { "host-invalidate", host_invalidate }, { "host-early", host_early }, \
    { "mapped-read", mapped_read }, { "mapped-kept", mapped_kept }, { "mapped-early", mapped_early }, { "mapped-state", mapped_state }, { "incoherent-read", incoherent_read }, \
    { "host-uniform", host_uniform }
