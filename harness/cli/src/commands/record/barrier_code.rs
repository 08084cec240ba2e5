//! Barriers as statements in C, with and without `synchronization2`.

use ::record::journal::SyncScope;
use device::mask_names::{access_names, old_stage_names, stage_names};

/// The two scopes of a barrier.
#[derive(Clone, Copy)]
pub struct Scopes {
    pub from: SyncScope,
    pub to: SyncScope,
}

/// The resources that a barrier is restricted to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BarrierKind {
    Memory,
    Buffer,
    Image,
}

/// A barrier in a command buffer.
pub struct BarrierStatement {
    pub scopes: Scopes,
    pub is_by_region: bool,
    pub kind: BarrierKind,
    /// The members of each structure that name its resource.
    pub resources: Vec<String>,
}

impl BarrierStatement {
    /// Returns the call.
    pub fn to_code(&self, has_synchronization2: bool) -> String {
        let Scopes { from, to } = self.scopes;
        let stages = [from.0, to.0].map(|stages| stage_constants(stages, has_synchronization2));
        let accesses = [from.1, to.1].map(|access| access_constants(access, has_synchronization2));
        let flags = if self.is_by_region { "VK_DEPENDENCY_BY_REGION_BIT" } else { "0" };
        let version = if has_synchronization2 { "2" } else { "" };
        let constant = if has_synchronization2 { "_2" } else { "" };
        let names = |kind: BarrierKind| match kind {
            BarrierKind::Memory => ("Memory", "MEMORY", "memory"),
            BarrierKind::Buffer => ("BufferMemory", "BUFFER_MEMORY", "bufferMemory"),
            BarrierKind::Image => ("ImageMemory", "IMAGE_MEMORY", "imageMemory"),
        };
        let (class, kind, variable) = names(self.kind);
        let scope = |side: &str, index: usize| match has_synchronization2 {
            true => format!(".{side}StageMask = {}, .{side}AccessMask = {}", stages[index], accesses[index]),
            false => format!(".{side}AccessMask = {}", accesses[index]),
        };
        let entry = |resource: &String| {
            let (source, destination) = (scope("src", 0), scope("dst", 1));
            format!(
                "{{ .sType = VK_STRUCTURE_TYPE_{kind}_BARRIER{constant}, {source}, {destination}{resource} }}"
            )
        };
        let entries: Vec<String> = self.resources.iter().map(entry).collect();
        let (count, entries) = (entries.len(), entries.join(", "));
        let array = format!("(Vk{class}Barrier{version}[]){{ {entries} }}");
        if has_synchronization2 {
            return format!(
                "vkCmdPipelineBarrier2(commands, &(VkDependencyInfo){{ .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, \
                 .dependencyFlags = {flags}, .{variable}BarrierCount = {count}, .p{class}Barriers = {array} }});"
            );
        }
        // An order of execution alone needs no structure.
        let is_empty = |kind| kind != self.kind || from.1 | to.1 == 0;
        let list = |kind| if is_empty(kind) { "0, NULL".to_owned() } else { format!("{count}, {array}") };
        let lists = [BarrierKind::Memory, BarrierKind::Buffer, BarrierKind::Image].map(list);
        format!("vkCmdPipelineBarrier(commands, {}, {flags}, {});", stages.join(", "), lists.join(", "))
    }
}

/// Returns the members of a barrier that name the families of a transfer, or none.
pub fn family_members(families: Option<[u32; 2]>) -> String {
    const EXTERNAL: u32 = u32::MAX - 1;
    const FOREIGN: u32 = u32::MAX - 2;
    let [from, to] = families.unwrap_or([u32::MAX; 2]).map(|family| match family {
        u32::MAX => "VK_QUEUE_FAMILY_IGNORED".to_owned(),
        EXTERNAL => "VK_QUEUE_FAMILY_EXTERNAL".to_owned(),
        FOREIGN => "VK_QUEUE_FAMILY_FOREIGN_EXT".to_owned(),
        family => family.to_string(),
    });
    format!(", .srcQueueFamilyIndex = {from}, .dstQueueFamilyIndex = {to}")
}

/// Returns names of bits as constants in C.
pub fn constants(kind: &str, names: &str) -> String {
    if names.is_empty() {
        return "0".to_owned();
    }
    let constant = |name: &str| match name.strip_suffix("_EXT") {
        Some(name) => format!("VK_{kind}_{name}_BIT_EXT"),
        None => format!("VK_{kind}_{name}_BIT"),
    };
    names.split(" | ").map(constant).collect::<Vec<_>>().join(" | ")
}

/// Returns stages as constants of `VkMemoryBarrier2`, or of `vkCmdPipelineBarrier`.
pub fn stage_constants(mask: u64, has_synchronization2: bool) -> String {
    const TRANSFERS: u64 = 0xf << 32;
    let transfer = if mask & TRANSFERS == 0 { 0 } else { 1 << 12 };
    match has_synchronization2 {
        true => constants("PIPELINE_STAGE_2", &stage_names(mask)),
        false => constants("PIPELINE_STAGE", &old_stage_names(mask as u32 | transfer)),
    }
}

/// Returns accesses as the same constants.
pub fn access_constants(mask: u64, has_synchronization2: bool) -> String {
    const NEW: u64 = 7 << 32;
    let old = |new: u64, old: u64| if mask & new == 0 { 0 } else { old };
    match has_synchronization2 {
        true => constants("ACCESS_2", &access_names(mask)),
        false => {
            constants("ACCESS", &access_names(mask & !NEW | old(3 << 32, 1 << 5) | old(1 << 34, 1 << 6)))
        }
    }
}
