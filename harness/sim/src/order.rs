//! Preserved program order: the pairs of operations of an invocation that must perform in order.
//!
//! All other pairs may perform in any order. The rules are the weakest that make every happens-before edge an
//! edge in time, so the machine stays sound. They do not depend on values and are computed once for each pair
//! of operations of a kernel.

use vocabulary::StorageClassSet;

use crate::fault::Fault;
use crate::program::{MemoryOp, MemoryOpKind, WaitCondition};

/// Returns the condition under which `later` waits for `earlier`.
pub(crate) fn required_wait(earlier: &MemoryOp, later: &MemoryOp, fault: Fault) -> WaitCondition {
    if is_always_ordered(earlier, later, fault) {
        return WaitCondition::Always;
    }
    if !earlier.is_access() || !later.is_access() {
        return WaitCondition::Never;
    }
    let both = |kind| earlier.kind == kind && later.kind == kind;
    let broken = match fault {
        Fault::PlainLoadsReordered => both(MemoryOpKind::PlainLoad),
        Fault::PlainStoresReordered => both(MemoryOpKind::PlainStore),
        Fault::AtomicLoadsReordered => both(MemoryOpKind::AtomicLoad),
        Fault::StoreHoistedOverLoad => {
            earlier.kind == MemoryOpKind::PlainLoad && later.kind == MemoryOpKind::PlainStore
        }
        Fault::LoadMissesOwnStore => {
            earlier.kind == MemoryOpKind::PlainStore && later.kind == MemoryOpKind::PlainLoad
        }
        Fault::AliasStoreHoisted => {
            earlier.is_read()
                && later.kind == MemoryOpKind::PlainStore
                && earlier.reference != later.reference
        }
        Fault::RmwPassesStore => {
            earlier.kind == MemoryOpKind::AtomicStore && matches!(later.kind, MemoryOpKind::Rmw(_))
        }
        Fault::AtomicStoreHoistedOverLoad => {
            earlier.kind == MemoryOpKind::AtomicLoad && later.kind == MemoryOpKind::AtomicStore
        }
        Fault::AtomicLoadPassesStore => {
            earlier.kind == MemoryOpKind::AtomicStore && later.kind == MemoryOpKind::AtomicLoad
        }
        _ => false,
    };
    // A store and a later access through another reference to the same memory are not ordered.
    let ordered =
        earlier.reference == later.reference || earlier.kind != MemoryOpKind::PlainStore && earlier.is_read();
    if ordered && !broken { WaitCondition::SameAddress } else { WaitCondition::Never }
}

/// Returns true if the pair is ordered at all addresses.
fn is_always_ordered(earlier: &MemoryOp, later: &MemoryOp, fault: Fault) -> bool {
    let is_covered = |op: &MemoryOp, classes: StorageClassSet| {
        op.is_access() && classes.contains(op.class) || classes.intersects(op.classes)
    };
    let (e, l) = (earlier, later);

    let plain_store_sinks = fault == Fault::StoreSinksBelowRelease && e.kind == MemoryOpKind::PlainStore;
    let atomic_sinks = fault == Fault::AtomicStoreSinksBelowRelease && e.kind == MemoryOpKind::AtomicStore;
    let plain_load_hoisted = fault == Fault::LoadHoistedOverAcquire && l.kind == MemoryOpKind::PlainLoad;
    let atomic_load_hoisted =
        fault == Fault::AtomicLoadHoistedOverAcquire && l.kind == MemoryOpKind::AtomicLoad;
    let store_hoisted = fault == Fault::StoreHoistedOverAcquire && l.is_write();
    let load_sinks = fault == Fault::LoadSinksBelowRelease && e.kind == MemoryOpKind::PlainLoad;
    let unordered_fence = fault == Fault::FenceOrdersNothing
        && (e.kind == MemoryOpKind::Fence || l.kind == MemoryOpKind::Fence);
    let unordered_barrier =
        fault == Fault::BarrierOrdersNothing && (e.is_unsplit_barrier() || l.is_unsplit_barrier());
    let may_sink = plain_store_sinks || load_sinks || atomic_sinks;
    let may_hoist = plain_load_hoisted || store_hoisted || atomic_load_hoisted;
    let ordering = !unordered_fence && !unordered_barrier;

    // Operations do not move down over a release or up over an acquire.
    if ordering && !may_sink && l.release && is_covered(e, l.classes) {
        return true;
    }
    if ordering && !may_hoist && e.acquire && is_covered(l, e.classes) {
        return true;
    }
    // The atomic of a fence stays on its side: a store stays after a releasing fence, a load before an
    // acquiring one.
    let covered = |op: &MemoryOp, fence: &MemoryOp| fence.classes.contains(op.class);
    if ordering
        && e.is_fence()
        && e.release
        && l.is_atomic()
        && l.is_write()
        && covered(l, e)
        && fault != Fault::AtomicHoistedOverReleaseFence
    {
        return true;
    }
    if ordering
        && l.is_fence()
        && l.acquire
        && e.is_atomic()
        && e.is_read()
        && covered(e, l)
        && fault != Fault::AtomicSunkBelowAcquireFence
    {
        return true;
    }
    if e.kind == MemoryOpKind::ReleasePart
        && l.kind == MemoryOpKind::AtomicStore
        && fault == Fault::FlagOvertakesFlush
    {
        return false;
    }
    // Only program order joins the links of an availability and visibility chain, for all classes.
    let writes_non_private = l.is_write() && !l.private;
    // Later atomic loads may execute before an arrival: they could observe the writes that it makes available
    // only through another name.
    let ahead = e.split && !e.among_aliases && l.kind == MemoryOpKind::AtomicLoad;
    let reads_visibly = l.visible || l.is_atomic() && l.is_read() && !ahead;
    if ordering && e.make_available && (writes_non_private || reads_visibly || l.make_visible) && !may_hoist {
        return true;
    }
    if ordering && (e.available || e.is_atomic() && e.is_write()) && l.make_visible && !may_sink {
        return true;
    }
    // A section must not end before it begins.
    if matches!(e.kind, MemoryOpKind::SectionBegin { .. }) && l.kind == MemoryOpKind::SectionEnd {
        return true;
    }
    // Barriers are ordered with each other, and so are the two halves of one operation.
    if e.is_control_barrier() && (l.is_fence()) || l.is_control_barrier() && e.is_fence() {
        return true;
    }
    let same = e.reference == l.reference && e.scope == l.scope && e.classes == l.classes;
    let halves = |first: MemoryOpKind, second: MemoryOpKind| e.kind == first && l.kind == second && same;
    halves(MemoryOpKind::ReleasePart, MemoryOpKind::AtomicStore)
        || halves(MemoryOpKind::AtomicLoad, MemoryOpKind::AcquirePart)
}
