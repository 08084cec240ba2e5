//! Atomic instructions: the access, its race check, and the releases that it reads and stores.

use std::rc::Rc;

use rspirv::spirv::Op;

use crate::error::{malformed, unsupported};
use crate::lift::FindingKind;
use crate::order::{scope_from_number, semantics_from_number};
use arithmetic::{bits_of, float_of, mask, signed};

use super::access::WORD;
use super::machine::{Interpreter, InvocationCtx, Step};
use super::program::{Inst, ScalarKind, TypeLayout};
use super::shadow::MemoryAccessKind;
use super::value::{
    ConcretePointer, ConcreteValue, INACTIVE_LANE, LOCAL, SCHEDULE_DEPENDENT, Taint, UNDEFINED,
    undefined_source,
};

/// Returns the value that a read-modify-write stores.
fn apply_update(op: Op, old: u64, value: u64, bits: u32) -> Option<u64> {
    let (x, y) = (signed(old, bits), signed(value, bits));
    let float =
        |compute: fn(f64, f64) -> f64| bits_of(compute(float_of(old, bits), float_of(value, bits)), bits);
    let result = match op {
        Op::AtomicIAdd | Op::AtomicIIncrement => old.wrapping_add(value),
        Op::AtomicISub | Op::AtomicIDecrement => old.wrapping_sub(value),
        Op::AtomicAnd => old & value,
        Op::AtomicOr => old | value,
        Op::AtomicXor => old ^ value,
        Op::AtomicUMin => old.min(value),
        Op::AtomicUMax => old.max(value),
        Op::AtomicSMin => x.min(y) as u64,
        Op::AtomicSMax => x.max(y) as u64,
        Op::AtomicExchange | Op::AtomicStore => value,
        Op::AtomicFAddEXT => float(|a, b| a + b),
        Op::AtomicFMinEXT => float(f64::min),
        Op::AtomicFMaxEXT => float(f64::max),
        _ => return None,
    };
    Some(result & mask(bits))
}

/// Returns the group of operations that commute with each other; 0 for operations that do not commute.
fn commuting_group(op: Op) -> u8 {
    match op {
        Op::AtomicIAdd | Op::AtomicIIncrement | Op::AtomicISub | Op::AtomicIDecrement => 1,
        Op::AtomicAnd => 2,
        Op::AtomicOr => 3,
        Op::AtomicXor => 4,
        Op::AtomicUMin => 5,
        Op::AtomicUMax => 6,
        Op::AtomicSMin => 7,
        Op::AtomicSMax => 8,
        Op::AtomicFMinEXT => 9,
        Op::AtomicFMaxEXT => 10,
        _ => 0,
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

    pub(super) fn execute_atomic(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<()> {
        let program = self.program;
        let op = inst.raw.op;
        let pointer = self.operand_pointer(here, inst, 0)?;
        let compare = matches!(op, Op::AtomicCompareExchange | Op::AtomicCompareExchangeWeak);
        let at = scope_from_number(self.control_number(here, inst, 1, "a scope")?, program.module.vulkan)?;
        let order = super::sync::restrict_to_tracked_classes(semantics_from_number(self.control_number(
            here,
            inst,
            2,
            "semantics",
        )?)?);
        let unequal =
            match compare {
                true => super::sync::restrict_to_tracked_classes(semantics_from_number(
                    self.control_number(here, inst, 3, "semantics")?,
                )?),
                false => order,
            };
        let TypeLayout::Scalar { kind: ScalarKind::Integer | ScalarKind::Float, bits } =
            *program.type_layout(pointer.ty)?
        else {
            return Err(unsupported(format!("Op{op:?} on a value that is not a number")).into());
        };
        let (value, value_taint) = match op {
            Op::AtomicLoad => (0, 0),
            Op::AtomicIIncrement | Op::AtomicIDecrement => (1, 0),
            _ => self.operand_bits(here, inst, if compare { 4 } else { 3 })?,
        };
        let (expected, expected_taint) = if compare { self.operand_bits(here, inst, 5)? } else { (0, 0) };
        self.check_control_dependence(here, pointer.taint, "an address")?;
        self.observe_undefined(value_taint | expected_taint);
        let bytes = bits / 8;
        let Some(object) = self.object_mut(here, pointer.object) else {
            self.report_here(
                here,
                FindingKind::OutOfBounds,
                "an atomic through an address that points to no buffer".to_owned(),
            );
            return self.set_result(here, inst, ConcreteValue::Bits(0, UNDEFINED));
        };
        if pointer.out_of_bounds || !object.contains_range(pointer.offset, bytes) {
            if object.has_known_length || object.is_beyond_any_object(&pointer, bytes) {
                let message = self.describe_out_of_bounds(here, "an atomic", &pointer);
                self.report_here(here, FindingKind::OutOfBounds, message);
            } else {
                self.note_unknown_length(here, &pointer);
            }
            return self.set_result(here, inst, ConcreteValue::Bits(0, UNDEFINED));
        }
        let (old, old_taint) = object.read_scalar(pointer.offset, bytes);
        let class = object.class;
        let (reads, mut writes) = (op != Op::AtomicStore, op != Op::AtomicLoad);
        let mut taint = old_taint | value_taint | expected_taint;
        let new = match compare {
            true => {
                writes = old == expected;
                value
            }
            false if op == Op::AtomicLoad => old,
            false => apply_update(op, old, value, bits).ok_or_else(|| unsupported(format!("Op{op:?}")))?,
        };
        // The result of an exchange may be unused, but later operations observe what it stored.
        let used = reads && !matches!(op, Op::AtomicLoad | Op::AtomicExchange);
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
                operation: commuting_group(op),
            };
            self.stores_same_value = new == old;
            let unordered = self.check_access(here, &pointer, bytes, class, manner, reads);
            self.stores_same_value = false;
            let resets = op == Op::AtomicStore || commuting_group(op) != 0;
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
            let stays = if commuting_group(op) != 0 && !unordered {
                old_taint | value_taint
            } else {
                taint | SCHEDULE_DEPENDENT
            };
            let stays = match op {
                Op::AtomicStore if !unordered => value_taint,
                _ if alone => taint,
                _ => stays,
            };
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
            object.write_scalar(pointer.offset, bytes, new, taint);
        }
        self.set_result(here, inst, ConcreteValue::Bits(old, taint))
    }

    /// Returns a key of the object that is the same for all invocations.
    pub(super) fn location_key(&self, here: &InvocationCtx<'_>, object: u32) -> (u32, u32) {
        if object & super::machine::SHARED != 0 {
            (object, here.workgroup.invocations[here.index].identity.workgroup_index)
        } else {
            (object, 0)
        }
    }

    /// Returns a scalar operand with its taint.
    pub(super) fn operand_bits(
        &self,
        here: &InvocationCtx<'_>,
        inst: &Inst,
        index: usize,
    ) -> Step<(u64, Taint)> {
        match self.single_slot_value(here, self.program.module.operand_at(&inst.raw, index)?)? {
            ConcreteValue::Bits(bits, taint) => Ok((*bits, *taint)),
            ConcreteValue::NoBits(taint) => Ok((0, *taint)),
            ConcreteValue::Pointer(pointer) => Ok((self.address_of(pointer), pointer.taint)),
            _ => Err(malformed(format!("Op{:?} with these operands", inst.raw.op)).into()),
        }
    }
}
