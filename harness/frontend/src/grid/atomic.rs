//! Atomic instructions: the access, its race check, and the releases that it reads and stores.

use std::rc::Rc;

use arithmetic::mask;
use litmus::Semantics;
use spirv_reader::{AtomicAccess, AtomicFunction, AtomicKind};

use crate::error::{malformed, unsupported};
use crate::finding::FindingKind;
use crate::order::{scope_from_number, semantics_from_number};

use super::access::NO_BUFFER;
use super::program::Inst;
use super::shadow::{MemoryAccessKind, WORD};
use super::state::{Interpreter, InvocationCtx};
use super::step::Step;
use super::type_layout::{ScalarKind, TypeLayout};
use super::value::{
    COMPUTED_FROM_UNWRITTEN, ConcretePointer, ConcreteValue, INACTIVE_LANE, INPUT_MASK, LOCAL,
    SCHEDULE_DEPENDENT, Taint, UNDEFINED, UNWRITTEN, undefined_source,
};

/// Returns the group of updates that commute with each other; 0 for accesses that do not commute.
fn commuting_group(kind: AtomicKind) -> u8 {
    let AtomicKind::Update { function, .. } = kind else { return 0 };
    match function {
        AtomicFunction::Add | AtomicFunction::Subtract => 1,
        AtomicFunction::And => 2,
        AtomicFunction::Or => 3,
        AtomicFunction::Xor => 4,
        AtomicFunction::Min => 5,
        AtomicFunction::Max => 6,
        AtomicFunction::SignedMin => 7,
        AtomicFunction::SignedMax => 8,
        AtomicFunction::FloatMin => 9,
        AtomicFunction::FloatMax => 10,
        AtomicFunction::FloatAdd => 0,
    }
}

/// The end of the note on a buffer that is accessed beyond its assumed length.
pub(super) const BEYOND_ASSUMED: &str = "and accesses are beyond the assumed size";

impl Interpreter<'_> {
    /// Notes that the length of a buffer was assumed, if an access lies beyond it.
    pub(super) fn note_unknown_length(&mut self, here: &mut InvocationCtx<'_>, pointer: &ConcretePointer) {
        let unknown = self.object_mut(here, pointer.object).filter(|object| !object.has_known_length);
        if let Some(name) = unknown.map(|object| object.name.clone()) {
            self.notes.insert(format!("`{name}` is not given, {BEYOND_ASSUMED}"));
        }
    }

    pub(super) fn execute_atomic(
        &mut self,
        here: &mut InvocationCtx<'_>,
        inst: &Inst<'_>,
        AtomicAccess { pointer, scope, semantics, kind }: AtomicAccess,
    ) -> Step<()> {
        let program = self.program;
        let pointer = self.pointer_of_id(here, pointer)?;
        let at = scope_from_number(self.control_number(here, scope, "a scope")?, program.module.vulkan)?;
        let mut order_of = |id: u32| -> Step<Semantics> {
            let semantics = semantics_from_number(self.control_number(here, id, "semantics")?)?;
            Ok(super::sync::restrict_to_tracked_classes(semantics))
        };
        let order = order_of(semantics)?;
        let (unequal, comparator) = match kind {
            AtomicKind::CompareExchange { unequal, comparator, .. } => (order_of(unequal)?, Some(comparator)),
            _ => (order, None),
        };
        let TypeLayout::Scalar { kind: ScalarKind::Integer | ScalarKind::Float, bits } =
            *program.type_layout(pointer.ty)?
        else {
            return Err(unsupported(format!("Op{:?} on a value that is not a number", inst.raw.op)).into());
        };
        let (value, value_taint) = match (kind, kind.value()) {
            (AtomicKind::Load, _) => (0, 0),
            (_, None) => (1, 0),
            (_, Some(value)) => self.bits_of_id(here, value)?,
        };
        let compare = comparator.is_some();
        let (expected, expected_taint) = match comparator {
            Some(comparator) => self.bits_of_id(here, comparator)?,
            None => (0, 0),
        };
        self.check_control_dependence(here, pointer.taint, "an address")?;
        self.observe_undefined(value_taint | expected_taint);
        let bytes = bits / 8;
        let Some(object) = self.object_mut(here, pointer.object) else {
            self.report_here(here, FindingKind::OutOfBounds, format!("an atomic {NO_BUFFER}"));
            return self.set_result(here, inst, ConcreteValue::Bits(0, pointer.taint & INPUT_MASK));
        };
        if pointer.out_of_bounds || !object.contains_range(pointer.offset, bytes) {
            if object.has_known_length || object.is_beyond_any_object(&pointer, bytes) {
                let message = self.describe_out_of_bounds(here, "an atomic", &pointer);
                self.report_here(here, FindingKind::OutOfBounds, message);
            } else {
                self.note_unknown_length(here, &pointer);
            }
            // The access is reported, or within a longer buffer.
            return self.set_result(here, inst, ConcreteValue::Bits(0, pointer.taint & INPUT_MASK));
        }
        let (old, old_taint) = object.read_scalar(pointer.offset, bytes);
        let class = object.class;
        let (reads, mut writes) = (kind.reads(), kind.writes());
        let mut taint = old_taint | value_taint | expected_taint;
        let new = match kind {
            AtomicKind::Load => old,
            AtomicKind::Store { .. } | AtomicKind::Exchange { .. } => value & mask(bits),
            AtomicKind::CompareExchange { .. } => {
                writes = old == expected;
                value
            }
            AtomicKind::Update { function, .. } => function.apply(old, value, bits),
        };
        // The result of an exchange may be unused, but later operations observe what it stored.
        let clears = matches!(kind, AtomicKind::Update { function: AtomicFunction::And, .. } if value == 0);
        let used = matches!(kind, AtomicKind::CompareExchange { .. } | AtomicKind::Update { .. }) && !clears;
        if (value_taint | expected_taint) & UNDEFINED != 0 || used && old_taint & UNDEFINED != 0 {
            let message = match used && old_taint & UNDEFINED != 0 {
                true if old_taint & INACTIVE_LANE == 0 => {
                    format!(
                        "an atomic depends on the previous value of `{}`, which was not initialized",
                        object.name
                    )
                }
                true => format!("an atomic depends on {}", undefined_source(old_taint)),
                false => {
                    format!(
                        "an operand of an atomic depends on {}",
                        undefined_source(value_taint | expected_taint)
                    )
                }
            };
            self.report_here(here, FindingKind::UninitialisedRead, message);
        }
        let order = if compare && !writes { unequal } else { order };
        if class.is_some() && writes && new != old && self.is_probing() {
            self.changes += 1;
            return self.set_result(here, inst, ConcreteValue::Bits(old, taint));
        }
        if let Some(class) = class {
            self.events += 1;
            let manner = MemoryAccessKind {
                writes,
                atomic: true,
                wide: u64::from(bytes) > WORD,
                private: false,
                published: true,
                scope: at,
                operation: commuting_group(kind),
            };
            self.stores_same_value = new == old;
            let unordered = self.check_access(here, &pointer, bytes, class, manner, reads);
            self.stores_same_value = false;
            let resets = !reads || commuting_group(kind) != 0;
            if unordered && writes && new != old && resets && self.unordered_write.is_none() {
                let name = self.element_name(here, &pointer, pointer.offset);
                let me = here.invocation_mut().identity;
                let sentence = format!(
                    "the atomic write of `{name}` by invocation {me} is not ordered with an earlier one \
                     that does not commute with it: the final value depends on their order; this is not a \
                     race"
                );
                self.unordered_write = Some(sentence);
            }
            // The schedule decides which value is read, and which one remains unless the operations commute.
            let alone = self.is_single_invocation;
            let place = (self.location_key(here, pointer.object), pointer.offset);
            let key = (place.0.0, place.0.1, place.1);
            let found = self.releases.get(&key).cloned().unwrap_or_else(|| Rc::new([]));
            // The schedule decides which release is acquired, and whether a comparison stores.
            self.schedule_dependent |= (compare || reads && !found.is_empty()) && !alone;
            let looked_at = !self.setup.skip_race_checks && !self.is_probing();
            let me = here.invocation_mut();
            if writes && looked_at {
                me.make_available(at, order, true);
            }
            if reads && !self.setup.skip_race_checks {
                me.acquire_from_write(&found, at, order);
                if found
                    .iter()
                    .any(|release| !order.classes.contains(class) || !release.classes.contains(class))
                {
                    me.acquire_self_visible((key.0, key.1, key.2 / WORD), &found, at, order);
                }
            }
            if writes && looked_at {
                let mut carried = me.releases_of_write(class, at, order);
                if reads {
                    carried.extend(found.iter().cloned());
                }
                match carried.is_empty() && found.is_empty() {
                    true => {}
                    false => {
                        self.releases.insert(key, super::sync::to_release_set(carried));
                    }
                }
            }
            if reads && !self.setup.skip_race_checks {
                me.make_visible(at, order);
            }
            let stays = if commuting_group(kind) != 0 && !unordered {
                old_taint | value_taint
            } else {
                taint | SCHEDULE_DEPENDENT
            };
            let stays = if !reads && !unordered {
                value_taint
            } else if alone {
                taint
            } else {
                stays
            };
            let stays =
                if clears { stays & !(UNDEFINED | UNWRITTEN | COMPUTED_FROM_UNWRITTEN) } else { stays };
            taint |= if reads && !alone { SCHEDULE_DEPENDENT } else { 0 };
            if writes {
                self.changes += u64::from(new != old);
                if let Some(object) = self.object_mut(here, pointer.object) {
                    object.write_scalar(pointer.offset, bytes, new, stays);
                }
            }
        } else if writes
            && pointer.object & LOCAL != 0
            && let Some(object) = self.object_mut(here, pointer.object)
        {
            let stays =
                if clears { taint & !(UNDEFINED | UNWRITTEN | COMPUTED_FROM_UNWRITTEN) } else { taint };
            object.write_scalar(pointer.offset, bytes, new, stays);
        }
        self.set_result(here, inst, ConcreteValue::Bits(old, taint))
    }

    /// Returns a key of the object that is the same for all invocations.
    pub(super) fn location_key(&self, here: &InvocationCtx<'_>, object: u32) -> (u32, u32) {
        if object & super::state::SHARED != 0 {
            (object, here.workgroup.invocations[here.index].identity.workgroup_index)
        } else {
            (object, 0)
        }
    }

    /// Returns the bits of a scalar with its taint.
    pub(super) fn bits_of_id(&self, here: &InvocationCtx<'_>, id: u32) -> Step<(u64, Taint)> {
        match self.single_slot_value(here, id)? {
            ConcreteValue::Bits(bits, taint) => Ok((*bits, *taint)),
            ConcreteValue::NoBits(taint) => Ok((0, *taint)),
            ConcreteValue::Pointer(pointer) => Ok((self.address_of(pointer), pointer.taint)),
            _ => Err(malformed(format!("{} is not a number", self.program.module.display_name(id))).into()),
        }
    }
}
