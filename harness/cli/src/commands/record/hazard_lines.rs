//! Hazards as lines of output.

use ::record::hazard::{AccessSide, CommandHazard, Conflict, MissingOrder, ResourceId};
use ::record::journal::{Command, ProcessJournal};
use ::record::timeline::Timeline;
use results::wire::{HAZARD_SCHEMA, HazardCommand, HazardKind, HazardLine};

use super::inventory::{describe_command, entry_of, resource_names};

/// `VkPipelineStageFlagBits2` with their names, the first of a mask wins.
const STAGES: [(u64, &str); 22] = [
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
    (1 << 12, "ALL_TRANSFER"),
    (1 << 14, "HOST"),
    (1 << 15, "ALL_GRAPHICS"),
    (1, "TOP_OF_PIPE"),
];
/// `VkAccessFlagBits2` with their names.
const ACCESSES: [(u64, &str); 18] = [
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

fn name_of(table: &[(u64, &'static str)], mask: u64) -> &'static str {
    table.iter().find(|(bit, _)| mask & bit != 0).map_or("NONE", |(_, name)| name)
}

/// Converts a hazard of a process.
pub fn hazard_line(process: &ProcessJournal, timeline: &Timeline<'_>, hazard: &CommandHazard) -> HazardLine {
    let names = resource_names(&process.events);
    let command = |index: usize| {
        let executed = timeline.commands.get(index);
        let what = executed.map_or(String::new(), |executed| {
            describe_command(executed.command, entry_of(process, executed.command))
        });
        let label = executed.and_then(|executed| executed.label).map(str::to_owned);
        HazardCommand { index: index as u64, label, what }
    };
    let second = hazard.second.and_then(|second| timeline.commands.get(second));
    let is_transition = second.is_some_and(|executed| matches!(executed.command, Command::Barrier { .. }));
    let (kind, id) = match hazard.resource {
        ResourceId::Buffer(id) => ("buffer", id),
        ResourceId::Image(id) => ("image", id),
    };
    let resource = names.get(&id).map_or(format!("{kind} {id}"), |name| format!("{kind} {name}"));
    HazardLine {
        schema: HAZARD_SCHEMA.to_owned(),
        kind: match hazard.conflict {
            Conflict::WriteAfterWrite => HazardKind::WriteAfterWrite,
            Conflict::ReadAfterWrite => HazardKind::ReadAfterWrite,
            Conflict::WriteAfterRead => HazardKind::WriteAfterRead,
            Conflict::Host => HazardKind::Host,
        },
        commands: std::iter::once(hazard.first).chain(hazard.second).map(command).collect(),
        resource,
        bytes: hazard.bytes.map(|(from, to)| [from, to]),
        missing: describe_missing(hazard, is_transition),
        fix: barrier_code(hazard, is_transition),
        is_possible: hazard.is_possible,
        count: hazard.count,
    }
}

fn describe_missing(hazard: &CommandHazard, is_transition: bool) -> String {
    let (before, after) = (hazard.before, hazard.after);
    match hazard.missing {
        MissingOrder::Execution if hazard.conflict == Conflict::Host => {
            "the host wrote the bytes before it waited for the command".to_owned()
        }
        MissingOrder::Ownership => {
            "no transfer of ownership: a release on the first queue family and an acquire on the second"
                .to_owned()
        }
        MissingOrder::Execution => {
            let stage = |stage: u64, is_transition: bool| match (stage, is_transition) {
                (0, _) | (_, true) => "the layout transition",
                (stage, false) => name_of(&STAGES, stage),
            };
            format!(
                "no execution dependency from {} to {}",
                stage(before.stage, false),
                stage(after.stage, is_transition)
            )
        }
        MissingOrder::Availability => format!(
            "the write is not made available: no source access mask contains {}",
            name_of(&ACCESSES, before.access)
        ),
        MissingOrder::Visibility => format!(
            "the write is not made visible: no destination access mask contains {} at {}",
            name_of(&ACCESSES, after.access),
            name_of(&STAGES, after.stage)
        ),
    }
}

/// Returns the stage of the earlier command; a layout transition has none and is ordered by every stage.
fn before_stage(hazard: &CommandHazard) -> u64 {
    if hazard.before.stage == 0 { 1 << 16 } else { hazard.before.stage }
}

/// Returns the memory barrier between the commands, as C code.
fn barrier_code(hazard: &CommandHazard, is_transition: bool) -> String {
    if hazard.conflict == Conflict::Host {
        return "wait for the command's fence before the host writes".to_owned();
    }
    if hazard.missing == MissingOrder::Ownership {
        return "one barrier on each queue, with .srcQueueFamilyIndex and .dstQueueFamilyIndex of both"
            .to_owned();
    }
    let mask = |prefix: &str, name: &str| match name {
        "NONE" => "0".to_owned(),
        name => format!("VK_{prefix}_2_{name}_BIT"),
    };
    let side = |side: AccessSide, has_access: bool| {
        let access = if has_access { name_of(&ACCESSES, side.access) } else { "NONE" };
        (mask("PIPELINE_STAGE", name_of(&STAGES, side.stage)), mask("ACCESS", access))
    };
    let before = AccessSide { stage: before_stage(hazard), ..hazard.before };
    if is_transition {
        let (stage, access) = (name_of(&STAGES, before.stage), name_of(&ACCESSES, before.access));
        let access = if access == "NONE" {
            String::new()
        } else {
            format!(", .srcAccessMask |= VK_ACCESS_2_{access}_BIT")
        };
        return format!(
            "in the barrier of the transition, .srcStageMask |= VK_PIPELINE_STAGE_2_{stage}_BIT{access}"
        );
    }
    // A write after a read needs execution order alone.
    let has_access = hazard.conflict != Conflict::WriteAfterRead;
    let ((from, from_access), (to, to_access)) = (side(before, has_access), side(hazard.after, has_access));
    format!(
        "VkMemoryBarrier2 barrier = {{ .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2, .srcStageMask = {from}, \
         .srcAccessMask = {from_access}, .dstStageMask = {to}, .dstAccessMask = {to_access} }};"
    )
}

/// Formats a hazard as text.
pub fn format_hazard(line: &HazardLine) -> String {
    let kind = match line.kind {
        HazardKind::WriteAfterWrite => "write after write",
        HazardKind::ReadAfterWrite => "read after write",
        HazardKind::WriteAfterRead => "write after read",
        HazardKind::Host => "host access",
    };
    let bytes =
        line.bytes.map_or(String::new(), |[from, to]| format!(", bytes {from} to {}", to.saturating_sub(1)));
    let lead = if line.is_possible { "possible hazard" } else { "hazard" };
    let mut text = format!("{lead}: {kind}, {}{bytes}\n", line.resource);
    for (lead, command) in ["first", "then"].iter().zip(&line.commands) {
        let label = command.label.as_ref().map_or(String::new(), |label| format!(" in {label}"));
        text += &format!("    {lead} {} (command {}){label}\n", command.what, command.index);
    }
    if line.count > 1 {
        text += &format!("    {} pairs of such commands\n", line.count);
    }
    text += &format!("    missing: {}\n    fix: between them, {}\n", line.missing, line.fix);
    text
}
