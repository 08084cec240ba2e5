//! Progress models: the progress guarantee of each level of the thread hierarchy to its members.

use std::fmt;
use std::str::FromStr;

use litmus::{Test, ThreadPlace};

/// Progress guarantee of a group to its members.
///
/// A *step* is a memory access or the arrival at a control barrier. A thread that waits in a barrier is not
/// schedulable, and no guarantee applies to it.
///
/// Sources: Sorensen et al., "Specifying and Testing GPU Workgroup Progress Models" (OOPSLA 2021),
/// <https://doi.org/10.1145/3485508>; HSA Platform System Architecture 1.2, section 2.11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgressGuarantee {
    /// Every member makes progress.
    Fair,
    /// Linear occupancy-bound: every unfinished member up to the highest id that has taken a step, ended
    /// members included.
    Lobe,
    /// The union of [`ProgressGuarantee::Hsa`] and [`ProgressGuarantee::Obe`].
    HsaObe,
    /// The schedulable member with the lowest id.
    Hsa,
    /// Occupancy-bound: every member that has taken a step.
    Obe,
    /// No particular member.
    Unfair,
}

/// Every guarantee by its name, from strong to weak (hsa and obe are incomparable).
pub const PROGRESS_GUARANTEES: [(&str, ProgressGuarantee); 6] = [
    ("fair", ProgressGuarantee::Fair),
    ("lobe", ProgressGuarantee::Lobe),
    ("hsa-obe", ProgressGuarantee::HsaObe),
    ("hsa", ProgressGuarantee::Hsa),
    ("obe", ProgressGuarantee::Obe),
    ("unfair", ProgressGuarantee::Unfair),
];

impl ProgressGuarantee {
    /// Its name, as `--progress` takes it.
    pub fn as_str(self) -> &'static str {
        PROGRESS_GUARANTEES.iter().find(|(_, promise)| *promise == self).map_or("", |(name, _)| name)
    }

    /// Marks the members with a progress obligation, given their statuses in id order.
    pub fn obligated_members(self, members: &[ThreadStatus]) -> Vec<bool> {
        let lowest = members.iter().position(|member| member.schedulable);
        let highest_started = members.iter().rposition(|member| member.started);
        let is_obligated = |index: usize| match self {
            ProgressGuarantee::Fair => true,
            ProgressGuarantee::Lobe => highest_started.is_some_and(|highest| index <= highest),
            ProgressGuarantee::HsaObe => lowest == Some(index) || members[index].started,
            ProgressGuarantee::Hsa => lowest == Some(index),
            ProgressGuarantee::Obe => members[index].started,
            ProgressGuarantee::Unfair => false,
        };
        (0..members.len()).map(is_obligated).collect()
    }
}

/// Semantics of progress models, variable so that tests can mutate it.
#[derive(Clone, Copy)]
pub struct ProgressSemantics {
    /// Marks the members to which a group guarantees progress.
    pub obligated_members: fn(ProgressGuarantee, &[ThreadStatus]) -> Vec<bool>,
    /// If a group makes progress, some member does, under every guarantee.
    pub some_member_progresses: bool,
    /// Groups of this level and above also have members outside the test, which may be the ones to progress.
    pub open_level: Option<HierarchyLevel>,
}

impl ProgressSemantics {
    /// The semantics in use; tests try others.
    pub const STANDARD: ProgressSemantics = ProgressSemantics {
        obligated_members: ProgressGuarantee::obligated_members,
        some_member_progresses: true,
        open_level: None,
    };
}

/// One guarantee per level. The guarantee of a level is that of a group to its members: `qf=obe` concerns
/// workgroups, `wg=` subgroups, `sg=` invocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgressModel {
    /// Of the device to its queue families; fair where only other levels are named.
    pub device: ProgressGuarantee,
    /// Of a queue family to its workgroups.
    pub queue_family: ProgressGuarantee,
    /// Of a workgroup to its subgroups.
    pub workgroup: ProgressGuarantee,
    /// Of a subgroup to its invocations.
    pub subgroup: ProgressGuarantee,
}

impl ProgressModel {
    /// The same promise on every level.
    pub fn uniform(guarantee: ProgressGuarantee) -> ProgressModel {
        ProgressModel {
            device: guarantee,
            queue_family: guarantee,
            workgroup: guarantee,
            subgroup: guarantee,
        }
    }
}

impl fmt::Display for ProgressModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if [self.device, self.queue_family, self.workgroup] == [self.subgroup; 3] {
            return f.write_str(self.subgroup.as_str());
        }
        let levels = [("qf", self.queue_family), ("wg", self.workgroup), ("sg", self.subgroup)];
        for (index, (level, promise)) in levels.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{level}={}", promise.as_str())?;
        }
        Ok(())
    }
}

/// The name of an unknown progress model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgressModelError {
    #[error("unknown progress model `{0}`: expected one of fair, lobe, hsa-obe, hsa, obe, unfair")]
    UnknownModel(String),
    #[error("unknown level `{0}`: expected qf, wg or sg, as in `qf=obe,sg=hsa`")]
    UnknownLevel(String),
    #[error("level `{0}` is named twice")]
    DuplicateLevel(String),
}

impl FromStr for ProgressGuarantee {
    type Err = ProgressModelError;

    fn from_str(name: &str) -> Result<ProgressGuarantee, ProgressModelError> {
        PROGRESS_GUARANTEES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, promise)| *promise)
            .ok_or_else(|| ProgressModelError::UnknownModel(name.to_owned()))
    }
}

impl FromStr for ProgressModel {
    type Err = ProgressModelError;

    /// `fair`, or levels as in `qf=obe,sg=hsa`; levels that are not named are fair.
    fn from_str(text: &str) -> Result<ProgressModel, ProgressModelError> {
        if !text.contains('=') {
            return text.trim().parse().map(ProgressModel::uniform);
        }
        let mut model = ProgressModel::uniform(ProgressGuarantee::Fair);
        let mut named_levels = Vec::new();
        for part in text.split(',') {
            let (level, promise) = part.split_once('=').unwrap_or((part, ""));
            let level = level.trim();
            let slot = match level {
                "qf" => &mut model.queue_family,
                "wg" => &mut model.workgroup,
                "sg" => &mut model.subgroup,
                _ => return Err(ProgressModelError::UnknownLevel(level.to_owned())),
            };
            if named_levels.contains(&level) {
                return Err(ProgressModelError::DuplicateLevel(level.to_owned()));
            }
            named_levels.push(level);
            *slot = promise.trim().parse()?;
        }
        Ok(model)
    }
}

/// Progress status of a thread or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStatus {
    /// It has ended (all members have).
    pub ended: bool,
    /// It has taken a step (some member has).
    pub started: bool,
    /// It can take a step: it has neither ended nor does it wait.
    pub schedulable: bool,
}

const EMPTY_GROUP_STATUS: ThreadStatus = ThreadStatus { ended: true, started: false, schedulable: false };

/// Thread hierarchy of a test: device, queue families, workgroups, subgroups, invocations. Host threads form
/// a group at the level of queue families.
pub(super) enum ThreadTree {
    Thread(usize),
    Members(HierarchyLevel, Vec<ThreadTree>),
}

/// A level of the hierarchy of threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HierarchyLevel {
    Device,
    QueueFamily,
    Workgroup,
    Subgroup,
    /// Host threads are always scheduled.
    Host,
}

impl ThreadTree {
    pub(super) fn from_test(test: &Test) -> ThreadTree {
        let mut placed: Vec<(litmus::Placement, usize)> = Vec::new();
        let mut hosts = Vec::new();
        for (index, thread) in test.threads.iter().enumerate() {
            match thread.place {
                ThreadPlace::Device(placement) => placed.push((placement, index)),
                ThreadPlace::Host => hosts.push(ThreadTree::Thread(index)),
            }
        }
        // Sorted by coordinates, so that the members of each unit are contiguous.
        placed.sort_unstable();
        let mut families = group_by_coordinate(
            &placed,
            |p| p.queue_family,
            HierarchyLevel::QueueFamily,
            |family| {
                group_by_coordinate(
                    family,
                    |p| p.workgroup,
                    HierarchyLevel::Workgroup,
                    |workgroup| {
                        group_by_coordinate(
                            workgroup,
                            |p| p.subgroup,
                            HierarchyLevel::Subgroup,
                            |subgroup| {
                                subgroup.iter().map(|(_, thread)| ThreadTree::Thread(*thread)).collect()
                            },
                        )
                    },
                )
            },
        );
        if !hosts.is_empty() {
            families.push(ThreadTree::Members(HierarchyLevel::Host, hosts));
        }
        ThreadTree::Members(HierarchyLevel::Device, families)
    }

    fn aggregate_status(&self, thread_status: &impl Fn(usize) -> ThreadStatus) -> ThreadStatus {
        match self {
            ThreadTree::Thread(thread) => thread_status(*thread),
            ThreadTree::Members(_, members) => members.iter().fold(EMPTY_GROUP_STATUS, |all, member| {
                let member_status = member.aggregate_status(thread_status);
                ThreadStatus {
                    ended: all.ended && member_status.ended,
                    started: all.started || member_status.started,
                    schedulable: all.schedulable || member_status.schedulable,
                }
            }),
        }
    }

    /// Returns true if an infinite run satisfies every guarantee to this group.
    ///
    /// `thread_status` returns a thread's status throughout the run; `takes_step` is true for the threads that step
    /// in it.
    pub(super) fn satisfies_guarantees(
        &self,
        model: &ProgressModel,
        semantics: ProgressSemantics,
        thread_status: &impl Fn(usize) -> ThreadStatus,
        takes_step: &impl Fn(usize) -> bool,
    ) -> bool {
        match self {
            ThreadTree::Thread(thread) => !thread_status(*thread).schedulable || takes_step(*thread),
            ThreadTree::Members(level, members) => {
                let statuses: Vec<ThreadStatus> =
                    members.iter().map(|member| member.aggregate_status(thread_status)).collect();
                let obligated = (semantics.obligated_members)(level.guarantee_in(model), &statuses);
                let mut any_schedulable = false;
                let mut any_progresses = false;
                for (index, member) in members.iter().enumerate() {
                    let is_satisfied =
                        member.satisfies_guarantees(model, semantics, thread_status, takes_step);
                    if obligated[index] && !is_satisfied {
                        return false;
                    }
                    any_schedulable |= statuses[index].schedulable;
                    any_progresses |= statuses[index].schedulable && is_satisfied;
                }
                // Members outside the test may have been the ones to progress.
                let has_outside_members = semantics.open_level.is_some_and(|beside| *level <= beside);
                any_progresses || !any_schedulable || !semantics.some_member_progresses || has_outside_members
            }
        }
    }

    /// Adds the threads with a progress obligation. If no guarantee applies and only one member can progress,
    /// the obligation is on that member.
    pub(super) fn collect_obligations(
        &self,
        model: &ProgressModel,
        thread_status: &impl Fn(usize) -> ThreadStatus,
        obligations: &mut Vec<usize>,
    ) {
        match self {
            ThreadTree::Thread(thread) => {
                if thread_status(*thread).schedulable {
                    obligations.push(*thread);
                }
            }
            ThreadTree::Members(level, members) => {
                let statuses: Vec<ThreadStatus> =
                    members.iter().map(|member| member.aggregate_status(thread_status)).collect();
                let is_obligated = level.guarantee_in(model).obligated_members(&statuses);
                let schedulable: Vec<usize> =
                    (0..members.len()).filter(|index| statuses[*index].schedulable).collect();
                let mut obligated_members: Vec<usize> =
                    schedulable.iter().copied().filter(|index| is_obligated[*index]).collect();
                // A group that makes progress has some member that does, and there is only one
                // candidate.
                if obligated_members.is_empty() && schedulable.len() == 1 {
                    obligated_members = schedulable;
                }
                for index in obligated_members {
                    members[index].collect_obligations(model, thread_status, obligations);
                }
            }
        }
    }
}

impl HierarchyLevel {
    fn guarantee_in(self, model: &ProgressModel) -> ProgressGuarantee {
        match self {
            HierarchyLevel::Device => model.device,
            HierarchyLevel::QueueFamily => model.queue_family,
            HierarchyLevel::Workgroup => model.workgroup,
            HierarchyLevel::Subgroup => model.subgroup,
            HierarchyLevel::Host => ProgressGuarantee::Fair,
        }
    }
}

/// Groups sorted threads by a coordinate.
fn group_by_coordinate(
    placed_threads: &[(litmus::Placement, usize)],
    coordinate: impl Fn(&litmus::Placement) -> u32,
    level: HierarchyLevel,
    members: impl Fn(&[(litmus::Placement, usize)]) -> Vec<ThreadTree>,
) -> Vec<ThreadTree> {
    placed_threads
        .chunk_by(|left, right| coordinate(&left.0) == coordinate(&right.0))
        .map(|chunk| ThreadTree::Members(level, members(chunk)))
        .collect()
}
