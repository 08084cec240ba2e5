//! Fault injection: rules of the memory model that the machine breaks on request, as defects of real drivers,
//! compilers and chips do.
//!
//! To add a fault, add a variant, a row in `data/faults.toml`, and a check at the place in the machine that
//! implements the rule.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::Deserialize;
use strum::EnumIter;

/// The expected result of running the test suite on a device with a fault.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum ExpectedEffect {
    /// A forbidden outcome, or values that no execution produces.
    Violates,
    /// No result: the device hangs, is lost, or leaves instances unexecuted.
    Inconclusive,
    /// Nothing: no race-free test can distinguish it from a sound device; the text is the reason.
    Invisible(&'static str),
}

impl ExpectedEffect {
    /// Returns the word that reports print.
    pub fn word(self) -> &'static str {
        match self {
            ExpectedEffect::Violates => "violates",
            ExpectedEffect::Inconclusive => "inconclusive",
            ExpectedEffect::Invisible(_) => "invisible",
        }
    }
}

/// The description of a fault for users.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The fault that the row describes.
    pub fault: Fault,
    /// Its name on the command line.
    pub name: &'static str,
    /// The group of rules that the fault belongs to.
    pub family: &'static str,
    /// The rule that is broken, and how.
    pub rule: &'static str,
    /// A real bug of this kind, if one is known.
    #[serde(borrow)]
    pub reference: Option<&'static str>,
    /// The expected result of the suite.
    pub expect: ExpectedEffect,
}

/// A rule that the machine breaks. The rows of the table describe them.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Hash, EnumIter)]
pub enum Fault {
    /// A sound machine.
    #[default]
    None,
    ReleaseNoFlush,
    ReleaseNotCumulative,
    StoreSinksBelowRelease,
    LoadSinksBelowRelease,
    AtomicStoreSinksBelowRelease,
    FlagOvertakesFlush,
    AcquireNoInvalidate,
    AcquireOwnCacheOnly,
    InvalidateOrderWrong,
    LoadHoistedOverAcquire,
    AtomicLoadHoistedOverAcquire,
    StoreHoistedOverAcquire,
    ReadOnlyKernel,
    ReadOnlyLoadMerged,
    AtomicLoadHoistedFromLoop,
    FenceOrdersNothing,
    FenceWaitOnly,
    AtomicHoistedOverReleaseFence,
    AtomicSunkBelowAcquireFence,
    BarrierWithoutMemory,
    BarrierOrdersNothing,
    BarrierDoesNotWait,
    BarrierOpensEarly,
    BarrierScopeDemoted,
    BarrierLargeWorkgroup,
    BarrierPartialSubgroup,
    BarrierSlotsRunOut,
    SplitArrivalForgotten,
    SplitWaitTooEarly,
    SplitWrongRound,
    SplitArrivalRelaxed,
    SplitWaitRelaxed,
    SplitIgnored,
    SubgroupActiveLanesIgnored,
    MaximalReconvergenceIgnored,
    SyncScopeDemoted,
    AtomicScopeDemoted,
    SubgroupSyncNothing,
    OneSubgroupDemoted,
    QueueFamilyDemoted,
    DeviceScopeIsQueueFamily,
    AvailableDropped,
    VisibleDropped,
    NonPrivateLost,
    BufferNotFlushed,
    SemanticsOfFlagOnly,
    WorkgroupMemoryNotFlushed,
    WorkgroupMemoryNotInvalidated,
    ImageNotFlushed,
    ImageNotInvalidated,
    ImageAtomicsAtWorkgroup,
    AtomicLoadsReordered,
    AtomicLoadPassesStore,
    AtomicStoreHoistedOverLoad,
    RelaxedAtomicFromL0,
    StaleWorkgroupLine,
    AtomicStoreInL0,
    PlainLoadsReordered,
    PlainStoresReordered,
    LoadMissesOwnStore,
    StoreHoistedOverLoad,
    AliasStoreHoisted,
    RmwNotAtomic,
    RmwAtWorkgroup,
    RmwPassesStore,
    RmwResultLost,
    FloatAddNotAtomic,
    RmwAmongThemselves,
    RmwInHostMemory,
    ZeroInitMissing,
    WorkgroupMemoryZeroedLate,
    EvictionDropsDirty,
    NarrowStoreIsWord,
    Tearing,
    WholeLineWrittenBack,
    ForwardingIgnoresSize,
    ConstantCacheStale,
    AvailableDeviceNothing,
    VisibleDeviceNothing,
    MemoryAccessIgnored,
    DependencyIgnored,
    StageMaskTooNarrow,
    EventWaitTooEarly,
    SemaphorePublishesNothing,
    OwnershipTransferDropped,
    FragmentStoresKept,
    HelperStores,
    VertexShadedTwice,
    SectionNotExclusive,
    SectionOrderIgnored,
    SectionBeginAcquiresNothing,
    SectionEndReleasesNothing,
    HostFlushNothing,
    HostInvalidateNothing,
    SubmissionDropsHostWrites,
    HostReadIgnored,
    HostWriteIgnored,
    FencePublishesNothing,
    FenceWaitTooEarly,
    HostSignalIgnored,
    SemanticsLostInCalls,
    AtomicSplitInCalls,
    DeadStoreIfConverted,
    CommonLoadHoistedOverAcquire,
    CommonStoreSunkBelowRelease,
    GarbageResults,
    LoopsStopSilently,
    Hang,
    DeviceLost,
}

/// The rows of all faults.
pub static FAULTS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the table is a constant, which the tests read")]
    let mut table: BTreeMap<&str, Vec<Row>> =
        toml::from_str(include_str!("../data/faults.toml")).expect("the table of faults");
    table.remove("fault").unwrap_or_default()
});

/// The error for a name that no fault has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault `{name}`{}; `faults` lists all", similar_fault(name))]
pub struct UnknownFault {
    pub name: String,
}

/// Returns ` (did you mean \`NAME\`?)` if a fault's name is at most three edits away.
fn similar_fault(name: &str) -> String {
    let near = FAULTS.iter().map(|row| (strsim::damerau_levenshtein(name, row.name), row.name)).min();
    near.filter(|(distance, _)| *distance <= 3)
        .map_or_else(String::new, |(_, near)| format!(" (did you mean `{near}`?)"))
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Fault, UnknownFault> {
        let row = FAULTS.iter().find(|row| row.name == name);
        row.map(|row| row.fault).ok_or_else(|| UnknownFault { name: name.to_owned() })
    }
}

impl Fault {
    /// Returns true if semaphore signals between these queues make no writes available.
    pub(crate) fn suppresses_availability(self, queues: &[plan::Queue]) -> bool {
        let several =
            || queues.iter().any(|queue| queues.first().is_some_and(|first| first.family != queue.family));
        self == Fault::SemaphorePublishesNothing || self == Fault::OwnershipTransferDropped && several()
    }

    /// Returns the row of the fault, or `None` for a sound machine.
    pub fn row(self) -> Option<&'static Row> {
        FAULTS.iter().find(|row| row.fault == self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use strum::IntoEnumIterator;

    use super::*;

    #[test]
    fn every_fault_has_a_row() {
        let described: Vec<Fault> = FAULTS.iter().map(|row| row.fault).collect();
        assert_eq!(described, Fault::iter().skip(1).collect::<Vec<_>>(), "the order of the variants");
    }

    #[test]
    fn fault_names_are_unique_and_parse() {
        let names: BTreeSet<&str> = FAULTS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), FAULTS.len());
        for row in FAULTS.iter() {
            assert_eq!(row.name.parse(), Ok(row.fault));
            assert!(
                row.name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            );
        }
    }

    #[test]
    fn an_unknown_fault_names_a_similar_one() {
        let error = |name: &str| name.parse::<Fault>().unwrap_err().to_string();
        assert_eq!(error("gremlin"), "unknown fault `gremlin`; `faults` lists all");
        let similar =
            "unknown fault `release-no-flsh` (did you mean `release-no-flush`?); `faults` lists all";
        assert_eq!(error("release-no-flsh"), similar);
    }
}
