//! Atomic instructions: the access, its race check, and the releases that it reads and stores.

use std::rc::Rc;

use arithmetic::mask;
use litmus::{Semantics, StorageClass};
use spirv_reader::{AtomicAccess, AtomicFunction, AtomicKind};

use entry_point::order::{scope_from_number, semantics_from_number};
use entry_point::{FindingCause, malformed, unsupported};

use super::access::NO_BUFFER;
use super::happens_before::Epoch;
use super::program::DecodedInstruction;
use super::race_check::MemoryAccessKind;
use super::shadow::WORD_BYTES;
use super::state::{AtomicPlace, Interpreter, InvocationCtx};
use super::step::Step;
use super::type_layout::{ScalarKind, TypeLayout};
use super::value::{
    COMPUTED_FROM_UNWRITTEN, ConcretePointer, ConcreteValue, INACTIVE_LANE, INPUT_MASK, LAST_VALUE,
    PRIVATE_TAG, SCHEDULE_DEPENDENT, Taint, UNDEFINED, UNWRITTEN, undefined_source,
};

/// Upper bound on the settled loads of a place that are recorded.
const MAX_SETTLED_LOADS: usize = 1 << 10;

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
pub(super) const BEYOND_ASSUMED_SIZE: &str = "and accesses are beyond the assumed size";

impl Interpreter<'_> {
    /// Notes that the length of a buffer was assumed, if an access lies beyond it.
    pub(super) fn note_unknown_length(&mut self, ctx: &mut InvocationCtx<'_>, pointer: &ConcretePointer) {
        let unknown = self.object_mut(ctx, pointer.object).filter(|object| !object.has_known_length);
        if let Some(name) = unknown.map(|object| object.name.clone()) {
            self.notes.insert(format!("`{name}` is not given, {BEYOND_ASSUMED_SIZE}"));
        }
    }

    pub(super) fn execute_atomic(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        AtomicAccess { pointer, scope, semantics, kind }: AtomicAccess,
    ) -> Step<()> {
        let program = self.program;
        let pointer = self.pointer_of_id(ctx, pointer)?;
        let scope =
            scope_from_number(self.control_number(ctx, scope, "a scope")?, program.module.uses_vulkan_model)?;
        let mut order_of = |id: u32| -> Step<Semantics> {
            let number = self.control_number(ctx, id, "semantics")?;
            if self.last_semantics.0 != number {
                let semantics = super::sync::restrict_to_tracked_classes(semantics_from_number(number)?);
                self.last_semantics = (number, semantics);
            }
            Ok(self.last_semantics.1)
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
            (_, Some(value)) => self.bits_of_id(ctx, value)?,
        };
        let compare = comparator.is_some();
        let (expected, expected_taint) = match comparator {
            Some(comparator) => self.bits_of_id(ctx, comparator)?,
            None => (0, 0),
        };
        self.check_control_dependence(ctx, pointer.taint, "an address")?;
        self.observe_undefined(value_taint | expected_taint);
        let bytes = bits / 8;
        let Some(object) = self.object_mut(ctx, pointer.object) else {
            self.report_here(ctx, FindingCause::NoBuffer, format!("an atomic {NO_BUFFER}"));
            return self.set_result(ctx, inst, ConcreteValue::Bits(0, pointer.taint & INPUT_MASK));
        };
        if pointer.is_out_of_bounds || !object.contains_range(pointer.offset, bytes) {
            if object.has_known_length || object.is_beyond_any_object(&pointer, bytes) {
                let (message, element) = self.describe_out_of_bounds(ctx, "an atomic", &pointer);
                self.report_element(ctx, FindingCause::BeyondEnd, message, element);
            } else {
                self.note_unknown_length(ctx, &pointer);
            }
            // The access is reported, or within a longer buffer.
            return self.set_result(ctx, inst, ConcreteValue::Bits(0, pointer.taint & INPUT_MASK));
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
        let is_clearing_and =
            matches!(kind, AtomicKind::Update { function: AtomicFunction::And, .. } if value == 0);
        let used = matches!(kind, AtomicKind::CompareExchange { .. } | AtomicKind::Update { .. })
            && !is_clearing_and;
        if (value_taint | expected_taint) & UNDEFINED != 0 || used && old_taint & UNDEFINED != 0 {
            let element =
                if used && old_taint & UNDEFINED != 0 { object.name.clone() } else { String::new() };
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
            self.report_element(ctx, FindingCause::UndefinedValue, message, element);
        }
        let order = if compare && !writes { unequal } else { order };
        if class.is_some() && writes && new != old && self.is_probing() {
            self.changes += 1;
            return self.set_result(ctx, inst, ConcreteValue::Bits(old, taint));
        }
        if let Some(class) = class {
            self.events += 1;
            let access_kind = MemoryAccessKind {
                writes,
                is_atomic: true,
                is_wide: u64::from(bytes) > WORD_BYTES,
                is_private: false,
                is_published: true,
                scope,
                operation: commuting_group(kind),
            };
            self.repeated_store = (new == old).then_some(INPUT_MASK);
            let unordered = self.check_access(ctx, &pointer, bytes, class, access_kind, reads);
            self.repeated_store = None;
            let is_reset = !reads || commuting_group(kind) != 0;
            if unordered && writes && new != old && is_reset && self.unordered_write.is_none() {
                let name = self.element_name(ctx, &pointer, pointer.offset);
                let me = ctx.invocation_mut().identity;
                let sentence = format!(
                    "the atomic write of `{name}` by invocation {me} is not ordered with an earlier one \
                     that does not commute with it: the final value depends on their order; this is not a \
                     race"
                );
                self.unordered_write = Some(sentence);
            }
            // The schedule decides which value is read, and which one remains unless the operations commute.
            let is_single_invocation = self.is_single_invocation;
            let place = (self.location_key(ctx, pointer.object), pointer.offset);
            let key = (place.0.0, place.0.1, place.1);
            let found = self.releases.get(&key).cloned().unwrap_or_else(|| Rc::new([]));
            // The schedule decides which release is acquired, and whether a comparison stores.
            self.is_schedule_dependent |= (compare || reads && !found.is_empty()) && !is_single_invocation;
            let is_checked = !self.setup.skip_race_checks && !self.is_probing();
            let me = ctx.invocation_mut();
            if writes && is_checked {
                me.make_available(scope, order, true);
            }
            if reads && !self.setup.skip_race_checks {
                me.acquire_from_write(&found, scope, order);
                if found
                    .iter()
                    .any(|release| !order.classes.contains(class) || !release.classes.contains(class))
                {
                    me.acquire_self_visible((key.0, key.1, key.2 / WORD_BYTES), &found, scope, order);
                }
            }
            if writes && is_checked {
                let mut releases = me.releases_of_write(class, scope, order);
                if reads {
                    releases.extend(found.iter().cloned());
                }
                match releases.is_empty() && found.is_empty() {
                    true => {}
                    false => {
                        self.releases.insert(key, super::sync::to_release_set(releases));
                    }
                }
            }
            if reads && !self.setup.skip_race_checks {
                me.make_visible(scope, order);
            }
            let stays = if commuting_group(kind) != 0 && !unordered {
                old_taint | value_taint
            } else {
                taint | SCHEDULE_DEPENDENT
            };
            let stays = if !reads && !unordered {
                value_taint
            } else if is_single_invocation {
                taint
            } else {
                stays
            };
            let stays = if is_clearing_and {
                stays & !(UNDEFINED | UNWRITTEN | COMPUTED_FROM_UNWRITTEN)
            } else {
                stays
            };
            if writes && is_checked {
                self.check_settled_loads(ctx, key, class);
            }
            let is_settled = matches!(kind, AtomicKind::Load)
                && !unordered
                && is_checked
                && self.add_settled_load(ctx, key, class);
            taint |= match reads && !is_single_invocation {
                true if is_settled => LAST_VALUE,
                true => SCHEDULE_DEPENDENT,
                false => 0,
            };
            if writes {
                self.changes += u64::from(new != old);
                if let Some(object) = self.object_mut(ctx, pointer.object) {
                    object.write_scalar(pointer.offset, bytes, new, stays);
                }
            }
        } else if writes
            && pointer.object & PRIVATE_TAG != 0
            && let Some(object) = self.object_mut(ctx, pointer.object)
        {
            let stays = if is_clearing_and {
                taint & !(UNDEFINED | UNWRITTEN | COMPUTED_FROM_UNWRITTEN)
            } else {
                taint
            };
            object.write_scalar(pointer.offset, bytes, new, stays);
        }
        self.set_result(ctx, inst, ConcreteValue::Bits(old, taint))
    }

    /// Records an atomic load that every write so far happens before: it reads the last value in every schedule, unless a
    /// later write is unordered with it. Returns false if there is no room.
    fn add_settled_load(&mut self, ctx: &InvocationCtx<'_>, key: AtomicPlace, class: StorageClass) -> bool {
        let me = &ctx.workgroup.invocations[ctx.index];
        let epoch = Epoch {
            invocation: me.number,
            workgroup: me.identity.workgroup_index,
            time: me.current_time(),
            barrier_epoch: ctx.workgroup.barrier_epochs[class],
            subgroup_start: me.number - me.lane,
        };
        let loads = self.settled_loads.entry(key).or_default();
        let has_room = loads.len() < MAX_SETTLED_LOADS;
        if has_room {
            loads.push(epoch);
        }
        has_room
    }

    /// Makes the walk schedule-dependent if a settled load does not happen before an atomic write of its place.
    fn check_settled_loads(&mut self, ctx: &InvocationCtx<'_>, key: AtomicPlace, class: StorageClass) {
        let me = &ctx.workgroup.invocations[ctx.index];
        let Some(loads) = self.settled_loads.get(&key) else { return };
        let before = &me.views[class].ordering.before;
        let workgroup = me.identity.workgroup_index;
        let is_before = |load: &Epoch| load.invocation == me.number || before.includes_epoch(workgroup, load);
        if !loads.iter().all(is_before) {
            self.is_schedule_dependent = true;
            self.has_unsettled_load = true;
        }
    }

    /// Returns a key of the object that is the same for all invocations.
    pub(super) fn location_key(&self, ctx: &InvocationCtx<'_>, object: u32) -> (u32, u32) {
        if object & super::state::WORKGROUP_TAG != 0 {
            (object, ctx.workgroup.invocations[ctx.index].identity.workgroup_index)
        } else {
            (object, 0)
        }
    }

    /// Returns the bits of a scalar with its taint.
    pub(super) fn bits_of_id(&self, ctx: &InvocationCtx<'_>, id: u32) -> Step<(u64, Taint)> {
        match self.single_slot_value(ctx, id)? {
            ConcreteValue::Bits(bits, taint) => Ok((*bits, *taint)),
            ConcreteValue::NoBits(taint) => Ok((0, *taint)),
            ConcreteValue::Pointer(pointer) => Ok((self.address_of(pointer), pointer.taint)),
            _ => Err(malformed(format!("{} is not a number", self.program.module.display_name(id))).into()),
        }
    }
}
