//! Names of pipeline stages, accesses and image layouts.

use ::record::journal::SyncScope;

/// The stage of every transfer.
pub const ALL_TRANSFER: u64 = 1 << 12;
/// `VkPipelineStageFlagBits2` with their names, the first of a mask wins.
pub const STAGES: [(u64, &str); 22] = [
    (1 << 16, "ALL_COMMANDS"),
    (1 << 11, "COMPUTE_SHADER"),
    (1 << 1, "DRAW_INDIRECT"),
    (1 << 2, "VERTEX_INPUT"),
    (1 << 3, "VERTEX_SHADER"),
    (1 << 4, "TESSELLATION_CONTROL_SHADER"),
    (1 << 5, "TESSELLATION_EVALUATION_SHADER"),
    (1 << 6, "GEOMETRY_SHADER"),
    (1 << 7, "FRAGMENT_SHADER"),
    (1 << 8, "EARLY_FRAGMENT_TESTS"),
    (1 << 9, "LATE_FRAGMENT_TESTS"),
    (1 << 10, "COLOR_ATTACHMENT_OUTPUT"),
    (1 << 19, "TASK_SHADER_EXT"),
    (1 << 20, "MESH_SHADER_EXT"),
    (1 << 32, "COPY"),
    (1 << 33, "RESOLVE"),
    (1 << 34, "BLIT"),
    (1 << 35, "CLEAR"),
    (ALL_TRANSFER, "ALL_TRANSFER"),
    (1 << 14, "HOST"),
    (1 << 15, "ALL_GRAPHICS"),
    (1, "TOP_OF_PIPE"),
];
/// `VkAccessFlagBits2` with their names.
pub const ACCESSES: [(u64, &str); 18] = [
    (1 << 33, "SHADER_STORAGE_READ"),
    (1 << 34, "SHADER_STORAGE_WRITE"),
    (1 << 32, "SHADER_SAMPLED_READ"),
    (1 << 3, "UNIFORM_READ"),
    (1, "INDIRECT_COMMAND_READ"),
    (1 << 1, "INDEX_READ"),
    (1 << 2, "VERTEX_ATTRIBUTE_READ"),
    (1 << 4, "INPUT_ATTACHMENT_READ"),
    (1 << 5, "SHADER_READ"),
    (1 << 6, "SHADER_WRITE"),
    (1 << 7, "COLOR_ATTACHMENT_READ"),
    (1 << 8, "COLOR_ATTACHMENT_WRITE"),
    (1 << 9, "DEPTH_STENCIL_ATTACHMENT_READ"),
    (1 << 10, "DEPTH_STENCIL_ATTACHMENT_WRITE"),
    (1 << 11, "TRANSFER_READ"),
    (1 << 12, "TRANSFER_WRITE"),
    (1 << 15, "MEMORY_READ"),
    (1 << 16, "MEMORY_WRITE"),
];

/// Image layouts (`VkImageLayout`) with their names.
const LAYOUTS: [(i32, &str); 12] = [
    (0, "UNDEFINED"),
    (1, "GENERAL"),
    (2, "COLOR_ATTACHMENT_OPTIMAL"),
    (3, "DEPTH_STENCIL_ATTACHMENT_OPTIMAL"),
    (4, "DEPTH_STENCIL_READ_ONLY_OPTIMAL"),
    (5, "SHADER_READ_ONLY_OPTIMAL"),
    (6, "TRANSFER_SRC_OPTIMAL"),
    (7, "TRANSFER_DST_OPTIMAL"),
    (8, "PREINITIALIZED"),
    (1_000_001_002, "PRESENT_SRC_KHR"),
    (1_000_314_000, "READ_ONLY_OPTIMAL"),
    (1_000_314_001, "ATTACHMENT_OPTIMAL"),
];

/// Returns the name of a layout, or its number.
pub fn layout_name(layout: i32) -> String {
    let known = LAYOUTS.iter().find(|(number, _)| *number == layout);
    known.map_or_else(|| format!("number {layout}"), |(_, name)| (*name).to_owned())
}

/// Returns the first name of a mask.
pub fn name_of(table: &[(u64, &'static str)], mask: u64) -> &'static str {
    table.iter().find(|(bit, _)| mask & bit != 0).map_or("NONE", |(_, name)| name)
}

/// Returns the names of all bits of a scope, as in `COMPUTE_SHADER (SHADER_WRITE)`.
pub fn describe_scope(scope: SyncScope) -> String {
    let names = |table: &[(u64, &'static str)], mask: u64| {
        let names = table.iter().filter(|(bit, _)| mask & bit != 0).map(|(_, name)| *name);
        names.collect::<Vec<_>>().join(" | ")
    };
    match (names(&STAGES, scope.0), names(&ACCESSES, scope.1)) {
        (stages, _) if stages.is_empty() => "NONE".to_owned(),
        (stages, accesses) if accesses.is_empty() => stages,
        (stages, accesses) => format!("{stages} ({accesses})"),
    }
}
