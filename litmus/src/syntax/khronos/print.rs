//! Prints a test in Khronos' `.test` format.

use super::instruction::{CLASSES, SCOPES};
use crate::khronos::{Khronos, NO_VALUE};
use crate::system::SystemOperation;
use crate::test::{
    Access, AccessKind, IgnoredClasses, InstructionKind, LocationId, LocationInit, MemoryPlace, Operand,
    Performer, RmwOperation, Scope, Semantics, StorageClass, Test, ThreadPlace,
};

/// Returns the text of a test from this format, or from [`to_khronos`](crate::convert::to_khronos).
pub(crate) fn print_test(test: &Test, khronos: &Khronos) -> String {
    let mut lines: Vec<String> =
        test.metadata.comments.iter().map(|comment| format!("//{}", comment.replace('\n', " "))).collect();
    for location in &test.locations {
        if let LocationInit::AliasOf(other) = location.init {
            lines.push(format!("SLOC {} {}", test.location(other).name, location.name));
        }
    }
    let mut before = None;
    for (index, thread) in test.threads.iter().enumerate() {
        if let (Some(ThreadPlace::Device(before)), ThreadPlace::Device(place)) = (before, thread.place) {
            let depth = match () {
                () if place.queue_family != before.queue_family => 3,
                () if place.workgroup != before.workgroup => 2,
                () if place.subgroup != before.subgroup => 1,
                () => 0,
            };
            lines.extend(["NEWQF", "NEWWG", "NEWSG"][3 - depth..].iter().map(|word| (*word).to_owned()));
        }
        before = Some(thread.place);
        lines.push(format!("NEWTHREAD {}", thread.number));
        for (position, instruction) in thread.instructions.iter().enumerate() {
            let read = khronos.read_value(index, position);
            lines.extend(self::instruction_line(test, &instruction.kind, read));
        }
    }
    for sync in test.attached_sync() {
        let (from, to) = (test.thread(sync.from.thread).number, test.thread(sync.to.thread).number);
        lines.push(format!("SSW {from} {to}"));
    }
    lines.extend(khronos.queries.iter().map(|query| query.text.clone()));
    lines.push(String::new());
    lines.join("\n")
}

/// Returns the line of an instruction with the forced value `read`; `None` if the format cannot express it.
pub(crate) fn instruction_line(test: &Test, kind: &InstructionKind, read: i64) -> Option<String> {
    let constant = |operand: &Operand| match operand {
        Operand::Constant(constant) => Some(*constant),
        Operand::Register(_) => None,
    };
    match kind {
        InstructionKind::Access(access) => {
            let MemoryPlace { location, class, .. } = access.place;
            let plain = access.place == MemoryPlace::whole_location(location, class)
                && access.performer == Performer::Invocation
                && !access.is_vector();
            plain.then_some(())?;
            let (class, _) = class_words(class)?;
            match &access.kind {
                AccessKind::Load(_) => {
                    let operands = operand_text(test, location, &[read]);
                    Some(format!("ld{}.{class} {operands}", self::access_suffix(&access.strength, "vis")?))
                }
                AccessKind::Store(values) => {
                    let operands = operand_text(test, location, &[constant(&values.first())?]);
                    Some(format!("st{}.{class} {operands}", self::access_suffix(&access.strength, "av")?))
                }
                AccessKind::Rmw { destination: Some(_), operation: RmwOperation::Exchange(value) } => {
                    let operands = operand_text(test, location, &[read, constant(value)?]);
                    let Access::Atomic { scope, semantics } = &access.strength else { return None };
                    let semantics = self::semantics_suffix(semantics)?;
                    Some(format!("rmw{}{semantics}.{class} {operands}", self::scope_suffix(*scope)?))
                }
                AccessKind::Rmw { .. } | AccessKind::Await { .. } => None,
            }
        }
        InstructionKind::Fence { scope, semantics } => {
            Some(format!("membar{}{}", self::scope_suffix(*scope)?, self::semantics_suffix(semantics)?))
        }
        InstructionKind::ControlBarrier(barrier) => {
            let semantics = match &barrier.semantics {
                Some(semantics) => self::semantics_suffix(semantics)?,
                None => String::new(),
            };
            let instance: i64 = barrier.id.parse::<i32>().ok()?.into();
            let plain = barrier.execution_scope == barrier.memory_scope
                && barrier.resource.is_none()
                && barrier.quorum.is_none()
                && instance.to_string() == barrier.id;
            plain.then_some(())?;
            Some(format!("cbar{}{semantics} {instance}", self::scope_suffix(barrier.memory_scope)?))
        }
        InstructionKind::System(SystemOperation::AvailableToDevice) => Some("avdevice".to_owned()),
        InstructionKind::System(SystemOperation::VisibleFromDevice) => Some("visdevice".to_owned()),
        _ => None,
    }
}

/// Returns `x`, `x = 1` or `x = 1 2`, without trailing open values.
fn operand_text(test: &Test, location: LocationId, values: &[i64]) -> String {
    let given = values.iter().rposition(|value| *value != NO_VALUE).map_or(0, |last| last + 1);
    let values: Vec<String> = values.iter().take(given).map(i64::to_string).collect();
    let equals = if values.is_empty() { "" } else { " = " };
    format!("{}{equals}{}", test.location(location).name, values.join(" "))
}

fn access_suffix(access: &Access, operation: &str) -> Option<String> {
    Some(match access {
        Access::Private => String::new(),
        Access::NonPrivate => ".nonpriv".to_owned(),
        Access::Coherent { scope } => format!(".{operation}{}", self::scope_suffix(*scope)?),
        Access::Atomic { scope, semantics } => {
            format!(".atom{}{}", self::scope_suffix(*scope)?, self::semantics_suffix(semantics)?)
        }
    })
}

fn scope_suffix(scope: Scope) -> Option<String> {
    SCOPES.iter().find(|(_, known)| *known == scope).map(|(word, _)| format!(".{word}"))
}

/// Returns the words of a storage class for accesses and for semantics.
fn class_words(class: StorageClass) -> Option<(&'static str, &'static str)> {
    CLASSES.iter().find(|(.., known)| *known == class).map(|(access, semantics, _)| (*access, *semantics))
}

fn semantics_suffix(semantics: &Semantics) -> Option<String> {
    if semantics.ignored != IgnoredClasses::NONE || semantics.sequential {
        return None;
    }
    let mut text = String::new();
    for (present, word) in [(semantics.order.acquires(), ".acq"), (semantics.order.releases(), ".rel")] {
        if present {
            text.push_str(word);
        }
    }
    for class in semantics.classes.iter() {
        text.push('.');
        text.push_str(class_words(class)?.1);
    }
    for (present, word) in [(semantics.make_available, ".semav"), (semantics.make_visible, ".semvis")] {
        if present {
            text.push_str(word);
        }
    }
    Some(text)
}
