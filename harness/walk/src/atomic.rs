//! Atomic instructions: the access, its race check, and the releases that it reads and stores.

use std::rc::Rc;

use arithmetic::{Instruction, NumberKind, mask};
use litmus::{Scope, Semantics, StorageClass};
use rspirv::spirv::Op;
use spirv_reader::{AtomicAccess, AtomicFunction, AtomicKind};

use entry_point::order::{scope_from_number, semantics_from_number};
use entry_point::{BufferRobustness, FindingCause, malformed, unsupported};

use super::happens_before::{Epoch, ReleaseMessage};
use super::program::DecodedInstruction;
use super::race_check::MemoryAccessKind;
use super::scalar_kind::ScalarKind;
use super::schedule::ScheduleRng;
use super::shadow::WORD_BYTES;
use super::state::{AtomicPlace, Interpreter, InvocationCtx};
use super::step::Step;
use super::sync::restrict_to_tracked_classes;
use super::value::{
    ConcretePointer, ConcreteValue, FAILED_WEAKLY, INACTIVE_LANE, INPUT_MASK, LAST_VALUE, OPAQUE,
    PRIVATE_TAG, SCHEDULE_DEPENDENT, Taint, UNDEFINED, undefined_source,
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

/// An atomic instruction with its operands, and what it reads and stores.
struct AtomicUpdate {
    kind: AtomicKind,
    scope: Scope,
    order: Semantics,
    /// The semantics if the comparison fails.
    unequal: Semantics,
    bytes: u32,
    value: u64,
    comparator: u64,
    operand_taint: Taint,
    old: u64,
    old_taint: Taint,
    new: u64,
    reads: bool,
    /// False for a load and an exchange that fails.
    writes: bool,
    /// True if an exchange fails although the values are equal.
    fails_weakly: bool,
}

impl AtomicUpdate {
    /// Completes the operands by the previous value.
    fn read(&mut self, old: u64, old_taint: Taint) {
        (self.old, self.old_taint) = (old, old_taint);
        self.new = match self.kind {
            AtomicKind::Load => old,
            AtomicKind::Store { .. } | AtomicKind::Exchange { .. } => self.value & mask(8 * self.bytes),
            AtomicKind::CompareExchange { .. } => {
                self.fails_weakly &= old == self.comparator;
                self.writes = old == self.comparator && !self.fails_weakly;
                self.order = if self.writes { self.order } else { self.unequal };
                self.value
            }
            AtomicKind::Update { function, .. } => function.apply(old, self.value, 8 * self.bytes),
        };
    }

    /// Returns true if the value that is stored is 0 whatever memory holds.
    fn clears(&self) -> bool {
        self.value == 0 && matches!(self.kind, AtomicKind::Update { function: AtomicFunction::And, .. })
    }

    /// Returns true if memory holds another value afterwards.
    fn changes_value(&self) -> bool {
        self.writes && self.new != self.old
    }

    /// Returns true if devices may store another value: a sum that is rounded.
    fn is_rounded(&self) -> bool {
        let (add, bits) = (Instruction::Core(Op::FAdd), 8 * self.bytes);
        matches!(self.kind, AtomicKind::Update { function: AtomicFunction::FloatAdd, .. })
            && !add.is_fixed_component(&[self.old, self.value], NumberKind::Float, bits, bits, self.new)
    }

    /// Returns true if the previous value decides what is stored.
    fn depends_on_old(&self) -> bool {
        matches!(self.kind, AtomicKind::CompareExchange { .. } | AtomicKind::Update { .. }) && !self.clears()
    }

    /// Returns the taint of the value that memory holds afterwards.
    fn stored_taint(&self) -> Taint {
        self.operand_taint | if self.depends_on_old() { self.old_taint } else { 0 }
    }
}

impl Interpreter<'_> {
    pub(super) fn execute_atomic(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        access: AtomicAccess,
    ) -> Step<()> {
        let pointer = self.pointer_of_id(ctx, access.pointer)?;
        let mut update = self.atomic_operands(ctx, inst, pointer.ty, access)?;
        self.check_control_dependence(ctx, pointer.taint, "an address")?;
        self.observe_undefined(update.operand_taint);
        let is_within = self.check_bounds(ctx, &pointer, update.bytes, "an atomic")?;
        let Some(object) = self.object_mut(ctx, pointer.object).filter(|_| is_within) else {
            // The access is reported, within a longer buffer, or without effect and with an undefined result.
            let object = self.object_mut(ctx, pointer.object);
            let is_robust = object.is_some_and(|object| object.robustness != BufferRobustness::Disabled);
            let unknown = if is_robust { OPAQUE } else { 0 };
            return self.set_result(ctx, inst, ConcreteValue::Bits(0, pointer.taint & INPUT_MASK | unknown));
        };
        let class = object.class;
        let (old, mut taint) = object.read_scalar(pointer.offset, update.bytes);
        update.fails_weakly = self.chooses_weak_failure(ctx, update.kind);
        update.read(old, taint);
        if self.setup.has_exact_floats && update.is_rounded() {
            update.operand_taint |= OPAQUE;
        }
        taint = taint & !FAILED_WEAKLY | if update.fails_weakly { FAILED_WEAKLY } else { 0 };
        self.report_undefined_update(ctx, &pointer, &update);
        taint |= update.operand_taint & !FAILED_WEAKLY;
        match class {
            Some(_) if update.changes_value() && self.is_probing() => self.changes += 1,
            Some(class) => taint |= self.update_shared(ctx, &pointer, class, &update),
            None if pointer.object & PRIVATE_TAG != 0 => {
                self.write_update(ctx, &pointer, &update, update.stored_taint());
            }
            None => {}
        }
        self.set_result(ctx, inst, ConcreteValue::Bits(old, taint))
    }

    fn atomic_operands(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        ty: u32,
        AtomicAccess { scope, semantics, kind, .. }: AtomicAccess,
    ) -> Step<AtomicUpdate> {
        let scope = self.scope_of_id(ctx, scope)?;
        let order = self.semantics_of_id(ctx, semantics)?;
        let (unequal, comparator) = match kind {
            AtomicKind::CompareExchange { unequal, comparator, .. } => {
                (self.semantics_of_id(ctx, unequal)?, Some(comparator))
            }
            _ => (order, None),
        };
        let Some((ScalarKind::Integer | ScalarKind::Float, bits, None)) = self.program.number_layout(ty)
        else {
            return Err(unsupported(format!("Op{:?} on a value that is not a number", inst.raw.op)).into());
        };
        let (value, value_taint) = match (kind, kind.value()) {
            (AtomicKind::Load, _) => (0, 0),
            (_, None) => (1, 0),
            (_, Some(value)) => self.bits_of_id(ctx, value)?,
        };
        let comparator = comparator.map(|id| self.bits_of_id(ctx, id)).transpose()?;
        let (comparator, comparator_taint) = comparator.unwrap_or_default();
        let (operand_taint, bytes) = (value_taint | comparator_taint, bits / 8);
        let (reads, writes, old, old_taint, new) = (kind.reads(), kind.writes(), 0, 0, 0);
        Ok(AtomicUpdate {
            kind,
            scope,
            order,
            unequal,
            bytes,
            value,
            comparator,
            operand_taint,
            old,
            old_taint,
            new,
            reads,
            writes,
            fails_weakly: false,
        })
    }

    /// Returns true if the schedule chooses that an exchange fails although the values are equal.
    ///
    /// None fails in the first schedule, and half of them do in each later one.
    fn chooses_weak_failure(&self, ctx: &InvocationCtx<'_>, kind: AtomicKind) -> bool {
        let may_fail = matches!(kind, AtomicKind::CompareExchange { is_weak: true, .. });
        let number = u64::from(ctx.workgroup.invocations[ctx.index].number);
        let seed = self.events.wrapping_mul(u64::from(self.rotation)).wrapping_add(number);
        may_fail && self.rotation > 1 && !self.is_probing() && ScheduleRng::new(seed).next_below(2) == 0
    }

    pub(super) fn scope_of_id(&mut self, ctx: &mut InvocationCtx<'_>, id: u32) -> Step<Scope> {
        let number = self.control_number(ctx, id, "a scope")?;
        Ok(scope_from_number(number, self.program.module.uses_vulkan_model)?)
    }

    pub(super) fn semantics_of_id(&mut self, ctx: &mut InvocationCtx<'_>, id: u32) -> Step<Semantics> {
        let number = self.control_number(ctx, id, "semantics")?;
        if self.last_semantics.0 != number {
            self.last_semantics = (number, restrict_to_tracked_classes(semantics_from_number(number)?));
        }
        Ok(self.last_semantics.1)
    }

    /// Reports an undefined value that decides what an atomic stores.
    fn report_undefined_update(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        update: &AtomicUpdate,
    ) {
        // The result of an exchange may be unused, but later operations observe what it stored.
        let old_taint = if update.depends_on_old() { update.old_taint } else { 0 };
        if (update.operand_taint | old_taint) & UNDEFINED == 0 {
            return;
        }
        if old_taint & UNDEFINED == 0 {
            let source = undefined_source(update.operand_taint);
            let message = format!("an operand of an atomic depends on {source}");
            return self.report_here(ctx, FindingCause::UndefinedValue, message);
        }
        let name =
            self.object_mut(ctx, pointer.object).map_or_else(String::new, |object| object.name.clone());
        let message = match old_taint & INACTIVE_LANE {
            0 => format!("an atomic depends on the previous value of `{name}`, which was not initialized"),
            _ => format!("an atomic depends on {}", undefined_source(old_taint)),
        };
        self.report_element(ctx, FindingCause::UndefinedValue, message, name);
    }

    /// Checks and performs an atomic of shared memory. Returns the taint of the value that it reads.
    fn update_shared(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        class: StorageClass,
        update: &AtomicUpdate,
    ) -> Taint {
        self.events += 1;
        let AtomicUpdate { kind, scope, bytes, reads, writes, .. } = *update;
        let operation = commuting_group(kind);
        let access_kind = MemoryAccessKind {
            writes,
            is_atomic: true,
            is_wide: u64::from(bytes) > WORD_BYTES,
            is_private: false,
            is_published: true,
            scope,
            operation,
        };
        self.repeated_store = (update.new == update.old).then_some(INPUT_MASK);
        let unordered = self.check_access(ctx, pointer, bytes, class, access_kind, reads);
        self.repeated_store = None;
        let is_reset = !reads || operation != 0;
        if unordered && update.changes_value() && is_reset && self.unordered_write.is_none() {
            let name = self.element_name(ctx, pointer, pointer.offset);
            let me = ctx.invocation_mut().identity;
            self.unordered_write = Some(format!(
                "the atomic write of `{name}` by invocation {me} is not ordered with an earlier one that does \
                 not commute with it: the final value depends on their order; this is not a race"
            ));
        }
        let (object, workgroup) = self.location_key(ctx, pointer.object);
        let place = (object, workgroup, pointer.offset);
        self.check_initialization(ctx, pointer, place, update, unordered);
        self.synchronize_atomic(ctx, place, class, update);
        let is_checked = !self.is_probing();
        if writes && is_checked {
            self.check_settled_loads(ctx, place, class);
        }
        let is_settled =
            kind == AtomicKind::Load && !unordered && is_checked && self.add_settled_load(ctx, place, class);
        // The schedule decides which value is read, and which one remains unless the operations commute.
        let remaining = if !reads && !unordered {
            update.operand_taint
        } else if self.is_single_invocation || operation != 0 && !unordered {
            update.stored_taint()
        } else {
            update.stored_taint() | SCHEDULE_DEPENDENT
        };
        self.changes += u64::from(update.changes_value());
        self.write_update(ctx, pointer, update, remaining);
        match reads && !self.is_single_invocation {
            true if is_settled => LAST_VALUE,
            true => SCHEDULE_DEPENDENT,
            false => 0,
        }
    }

    /// Reports an atomic that another schedule performs before the exchange that initializes its memory.
    fn check_initialization(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        place: AtomicPlace,
        update: &AtomicUpdate,
        unordered: bool,
    ) {
        let number = ctx.workgroup.invocations[ctx.index].number;
        if update.old_taint & UNDEFINED != 0 && matches!(update.kind, AtomicKind::Exchange { .. }) {
            self.initializers.insert(place, number);
        } else if self.initializers.get(&place).is_some_and(|first| *first != number) {
            self.initializers.remove(&place);
            if unordered && update.depends_on_old() {
                let name = self.element_name(ctx, pointer, pointer.offset);
                let message = format!(
                    "an atomic of `{name}` is not ordered with the exchange that initializes it, and may read an undefined value"
                );
                self.report_element(ctx, FindingCause::UndefinedValue, message, name);
            }
        }
    }

    /// Performs the release and the acquire of an atomic.
    fn synchronize_atomic(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        place: AtomicPlace,
        class: StorageClass,
        update: &AtomicUpdate,
    ) {
        let AtomicUpdate { scope, order, reads, .. } = *update;
        let found = self.releases.get(&place).cloned();
        let has_found = found.as_ref().is_some_and(|found| !found.is_empty());
        // The schedule decides which release is acquired, and whether a comparison stores.
        let is_comparison = matches!(update.kind, AtomicKind::CompareExchange { .. });
        let depends = is_comparison || reads && has_found;
        let is_weak = matches!(update.kind, AtomicKind::CompareExchange { is_weak: true, .. });
        self.is_schedule_dependent |= is_weak || depends && !self.is_single_invocation;
        let releases = update.writes && !self.is_probing();
        let me = ctx.invocation_mut();
        if releases {
            me.make_available(scope, order, true);
        }
        if let Some(found) = found.as_ref().filter(|_| reads) {
            me.acquire_from_write(found, scope, order);
            let is_untracked = |release: &Rc<ReleaseMessage>| {
                !order.classes.contains(class) || !release.classes.contains(class)
            };
            if found.iter().any(is_untracked) {
                me.acquire_self_visible((place.0, place.1, place.2 / WORD_BYTES), found, scope, order);
            }
        }
        if releases {
            let mut stored = me.releases_of_write(class, scope, order);
            if reads {
                stored.extend(found.iter().flat_map(|found| found.iter()).cloned());
            }
            if !stored.is_empty() || has_found {
                self.releases.insert(place, super::sync::to_release_set(stored));
            }
        }
        if reads {
            me.make_visible(scope, order);
        }
    }

    /// Stores the new value of an atomic that writes, with the taint of its computation.
    fn write_update(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        update: &AtomicUpdate,
        taint: Taint,
    ) {
        let defines_collisions = self.program.module.defines_collisions();
        if let Some(object) = self.object_mut(ctx, pointer.object).filter(|_| update.writes) {
            if defines_collisions && object.class.is_some() {
                object.save_plain_words(pointer.offset, update.bytes);
            }
            object.write_scalar(pointer.offset, update.bytes, update.new, taint);
        }
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
