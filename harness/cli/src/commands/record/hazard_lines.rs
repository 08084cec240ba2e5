//! Hazards as lines of output.

use ::record::hazards::{AccessSide, CommandHazard, Conflict, MissingOrder, ResourceId};
use ::record::journal::{Event, ProcessJournal};
use ::record::timeline::Timeline;
use results::wire::{HAZARD_SCHEMA, HazardCommand, HazardKind, HazardLine};

use super::inventory::{describe_command, resource_names};

/// `VkPipelineStageFlagBits2` with their names, the first of a mask wins.
const STAGES: [(u64, &str); 4] =
    [(1 << 11, "COMPUTE_SHADER"), (1 << 1, "DRAW_INDIRECT"), (1 << 32, "COPY"), (1 << 35, "CLEAR")];
/// `VkAccessFlagBits2` with their names.
const ACCESSES: [(u64, &str); 6] = [
    (1 << 33, "SHADER_STORAGE_READ"),
    (1 << 34, "SHADER_STORAGE_WRITE"),
    (1 << 3, "UNIFORM_READ"),
    (1, "INDIRECT_COMMAND_READ"),
    (1 << 11, "TRANSFER_READ"),
    (1 << 12, "TRANSFER_WRITE"),
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
        },
        commands: vec![command(hazard.first), command(hazard.second)],
        resource,
        bytes: hazard.bytes.map(|(from, to)| [from, to]),
        missing: describe_missing(hazard),
        fix: barrier_code(hazard),
        count: hazard.count,
    }
}

/// Returns the entry point of a dispatch.
fn entry_of<'a>(process: &'a ProcessJournal, command: &::record::journal::Command) -> Option<&'a str> {
    let ::record::journal::Command::Dispatch { kind: wanted, .. } = command else { return None };
    process.events.iter().find_map(|event| match event {
        Event::Kind { kind, entry, .. } if kind == wanted => Some(entry.as_str()),
        _ => None,
    })
}

fn describe_missing(hazard: &CommandHazard) -> String {
    let (before, after) = (hazard.before, hazard.after);
    match hazard.missing {
        MissingOrder::Execution => format!(
            "no execution dependency from {} to {}",
            name_of(&STAGES, before.stage),
            name_of(&STAGES, after.stage)
        ),
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

/// Returns the memory barrier between the commands, as C code.
fn barrier_code(hazard: &CommandHazard) -> String {
    let mask = |prefix: &str, name: &str| match name {
        "NONE" => "0".to_owned(),
        name => format!("VK_{prefix}_2_{name}_BIT"),
    };
    let side = |side: AccessSide, has_access: bool| {
        let access = if has_access { name_of(&ACCESSES, side.access) } else { "NONE" };
        (mask("PIPELINE_STAGE", name_of(&STAGES, side.stage)), mask("ACCESS", access))
    };
    // A write after a read needs execution order alone.
    let has_access = hazard.conflict != Conflict::WriteAfterRead;
    let ((from, from_access), (to, to_access)) =
        (side(hazard.before, has_access), side(hazard.after, has_access));
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
    let mut text = format!("hazard: {kind}, {}{bytes}\n", line.resource);
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
