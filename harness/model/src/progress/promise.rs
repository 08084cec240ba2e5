//! Progress models: what each level of the hierarchy of threads promises to those below it.

use std::fmt;
use std::str::FromStr;

use litmus::{Place, Test};

/// What a group promises its members. A *step* is an access to memory or the arrival at a control barrier; whoever waits
/// in a barrier is not schedulable and is owed nothing.
///
/// Sources: Sorensen et al., "Specifying and Testing GPU Workgroup Progress Models" (OOPSLA 2021); HSA Platform System
/// Architecture 1.2, section 2.11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Promise {
    /// Every member goes on.
    Fair,
    /// Linear occupancy-bound: whoever is unfinished and has an id not above that of some member that has taken a step,
    /// ended ones included.
    Lobe,
    /// The union of [`Promise::Hsa`] and [`Promise::Obe`].
    HsaObe,
    /// The schedulable member with the lowest id.
    Hsa,
    /// Occupancy-bound: whoever has taken a step goes on.
    Obe,
    /// Nobody in particular.
    Unfair,
}

/// Every promise by its name, from strong to weak (hsa and obe are incomparable).
pub const PROMISES: [(&str, Promise); 6] = [
    ("fair", Promise::Fair),
    ("lobe", Promise::Lobe),
    ("hsa-obe", Promise::HsaObe),
    ("hsa", Promise::Hsa),
    ("obe", Promise::Obe),
    ("unfair", Promise::Unfair),
];

impl Promise {
    /// Its name, as `--progress` takes it.
    pub fn name(self) -> &'static str {
        PROMISES.iter().find(|(_, promise)| *promise == self).map_or("", |(name, _)| name)
    }

    /// Which members are owed progress, by their standings in the order of ids.
    pub(super) fn owes(self, members: &[Standing]) -> Vec<bool> {
        let lowest = members.iter().position(|member| member.schedulable);
        let highest_started = members.iter().rposition(|member| member.started);
        let owes = |index: usize| match self {
            Promise::Fair => true,
            Promise::Lobe => highest_started.is_some_and(|highest| index <= highest),
            Promise::HsaObe => lowest == Some(index) || members[index].started,
            Promise::Hsa => lowest == Some(index),
            Promise::Obe => members[index].started,
            Promise::Unfair => false,
        };
        (0..members.len()).map(owes).collect()
    }
}

/// What progress models mean.
#[derive(Clone, Copy)]
pub(super) struct Definition {
    /// Which members a group owes progress.
    pub(super) owes: fn(Promise, &[Standing]) -> Vec<bool>,
    /// In a group that has progress someone goes on, whatever it owes.
    pub(super) someone_goes_on: bool,
    /// Groups of this level and above have members beside those of the test: these may be who goes on.
    pub(super) beside: Option<Level>,
}

impl Definition {
    /// What they do mean; tests try what they do not.
    pub(super) const STANDARD: Definition =
        Definition { owes: Promise::owes, someone_goes_on: true, beside: None };
}

/// A promise a level. The model named for a level says how a group of that level hands its own progress to its members:
/// `qf=obe` is about workgroups, `wg=` about subgroups, `sg=` about invocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgressModel {
    /// Of the device to its queue families; fair where only other levels are named.
    pub device: Promise,
    /// Of a queue family to its workgroups.
    pub queue_family: Promise,
    /// Of a workgroup to its subgroups.
    pub workgroup: Promise,
    /// Of a subgroup to its invocations.
    pub subgroup: Promise,
}

impl ProgressModel {
    /// The same promise on every level.
    pub fn uniform(promise: Promise) -> ProgressModel {
        ProgressModel { device: promise, queue_family: promise, workgroup: promise, subgroup: promise }
    }
}

impl fmt::Display for ProgressModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if [self.device, self.queue_family, self.workgroup] == [self.subgroup; 3] {
            return f.write_str(self.subgroup.name());
        }
        let levels = [("qf", self.queue_family), ("wg", self.workgroup), ("sg", self.subgroup)];
        for (index, (level, promise)) in levels.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{level}={}", promise.name())?;
        }
        Ok(())
    }
}

/// A progress model that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgressModelError {
    /// No such promise.
    #[error("unknown progress model `{0}`: expected one of fair, lobe, hsa-obe, hsa, obe, unfair")]
    UnknownModel(String),
    /// No such level.
    #[error("unknown level `{0}`: expected qf, wg or sg, as in `qf=obe,sg=hsa`")]
    UnknownLevel(String),
    /// A level is named twice.
    #[error("level `{0}` is named twice")]
    Twice(String),
}

impl FromStr for Promise {
    type Err = ProgressModelError;

    fn from_str(name: &str) -> Result<Promise, ProgressModelError> {
        PROMISES
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
        let mut model = ProgressModel::uniform(Promise::Fair);
        let mut named = Vec::new();
        for part in text.split(',') {
            let (level, promise) = part.split_once('=').unwrap_or((part, ""));
            let level = level.trim();
            let place = match level {
                "qf" => &mut model.queue_family,
                "wg" => &mut model.workgroup,
                "sg" => &mut model.subgroup,
                _ => return Err(ProgressModelError::UnknownLevel(level.to_owned())),
            };
            if named.contains(&level) {
                return Err(ProgressModelError::Twice(level.to_owned()));
            }
            named.push(level);
            *place = promise.trim().parse()?;
        }
        Ok(model)
    }
}

/// Where a thread or a group stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// It has ended (all members have).
    pub(super) ended: bool,
    /// It has taken a step (some member has).
    pub(super) started: bool,
    /// It can take a step: it has neither ended nor does it wait.
    pub(super) schedulable: bool,
}

const NOBODY: Standing = Standing { ended: true, started: false, schedulable: false };

/// The threads of a test as a tree: device, queue families, workgroups, subgroups, invocations; host threads stand beside
/// the queue families.
pub(super) enum Group {
    Thread(usize),
    Members(Level, Vec<Group>),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Device,
    QueueFamily,
    Workgroup,
    Subgroup,
    /// Host threads are always scheduled.
    Host,
}

impl Group {
    /// The tree of a test.
    pub(super) fn of(test: &Test) -> Group {
        let mut placed: Vec<(litmus::Placement, usize)> = Vec::new();
        let mut hosts = Vec::new();
        for (index, thread) in test.threads.iter().enumerate() {
            match thread.place {
                Place::Device(placement) => placed.push((placement, index)),
                Place::Host => hosts.push(Group::Thread(index)),
            }
        }
        placed.sort_unstable();
        let mut families = split(
            &placed,
            |p| p.queue_family,
            Level::QueueFamily,
            |family| {
                split(
                    family,
                    |p| p.workgroup,
                    Level::Workgroup,
                    |workgroup| {
                        split(
                            workgroup,
                            |p| p.subgroup,
                            Level::Subgroup,
                            |subgroup| subgroup.iter().map(|(_, thread)| Group::Thread(*thread)).collect(),
                        )
                    },
                )
            },
        );
        if !hosts.is_empty() {
            families.push(Group::Members(Level::Host, hosts));
        }
        Group::Members(Level::Device, families)
    }

    fn standing(&self, of: &impl Fn(usize) -> Standing) -> Standing {
        match self {
            Group::Thread(thread) => of(*thread),
            Group::Members(_, members) => members.iter().fold(NOBODY, |all, member| {
                let one = member.standing(of);
                Standing {
                    ended: all.ended && one.ended,
                    started: all.started || one.started,
                    schedulable: all.schedulable || one.schedulable,
                }
            }),
        }
    }

    /// Whether an infinite run in which the threads stand as `of` says, and in which those and only those step for which
    /// `steps` holds, keeps every promise to this group.
    pub(super) fn kept(
        &self,
        model: &ProgressModel,
        definition: Definition,
        of: &impl Fn(usize) -> Standing,
        steps: &impl Fn(usize) -> bool,
    ) -> bool {
        match self {
            Group::Thread(thread) => !of(*thread).schedulable || steps(*thread),
            Group::Members(level, members) => {
                let standings: Vec<Standing> = members.iter().map(|member| member.standing(of)).collect();
                let owes = (definition.owes)(level.promise(model), &standings);
                let mut any_schedulable = false;
                let mut any_goes_on = false;
                for (index, member) in members.iter().enumerate() {
                    let kept = member.kept(model, definition, of, steps);
                    if owes[index] && !kept {
                        return false;
                    }
                    any_schedulable |= standings[index].schedulable;
                    any_goes_on |= standings[index].schedulable && kept;
                }
                let others = definition.beside.is_some_and(|beside| *level <= beside);
                any_goes_on || !any_schedulable || !definition.someone_goes_on || others
            }
        }
    }

    /// Adds the threads that are owed a step now. Where a group owes nobody in particular and only one member can go on,
    /// that one must.
    pub(super) fn owed(&self, model: &ProgressModel, of: &impl Fn(usize) -> Standing, to: &mut Vec<usize>) {
        match self {
            Group::Thread(thread) => {
                if of(*thread).schedulable {
                    to.push(*thread);
                }
            }
            Group::Members(level, members) => {
                let standings: Vec<Standing> = members.iter().map(|member| member.standing(of)).collect();
                let owes = level.promise(model).owes(&standings);
                let schedulable: Vec<usize> =
                    (0..members.len()).filter(|index| standings[*index].schedulable).collect();
                let mut owed: Vec<usize> = schedulable.iter().copied().filter(|index| owes[*index]).collect();
                if owed.is_empty() && schedulable.len() == 1 {
                    owed = schedulable;
                }
                for index in owed {
                    members[index].owed(model, of, to);
                }
            }
        }
    }
}

impl Level {
    fn promise(self, model: &ProgressModel) -> Promise {
        match self {
            Level::Device => model.device,
            Level::QueueFamily => model.queue_family,
            Level::Workgroup => model.workgroup,
            Level::Subgroup => model.subgroup,
            Level::Host => Promise::Fair,
        }
    }
}

/// Groups sorted threads by a coordinate.
fn split(
    placed: &[(litmus::Placement, usize)],
    coordinate: impl Fn(&litmus::Placement) -> u32,
    level: Level,
    members: impl Fn(&[(litmus::Placement, usize)]) -> Vec<Group>,
) -> Vec<Group> {
    placed
        .chunk_by(|left, right| coordinate(&left.0) == coordinate(&right.0))
        .map(|chunk| Group::Members(level, members(chunk)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_read_and_written() {
        for (name, promise) in PROMISES {
            assert_eq!(name.parse(), Ok(ProgressModel::uniform(promise)));
            assert_eq!(ProgressModel::uniform(promise).to_string(), name);
        }
        let mixed: ProgressModel = "qf=obe,sg=hsa".parse().unwrap();
        assert_eq!((mixed.queue_family, mixed.workgroup), (Promise::Obe, Promise::Fair));
        assert_eq!(mixed.to_string(), "qf=obe,wg=fair,sg=hsa");
        assert_eq!(mixed.to_string().parse(), Ok(mixed));
    }

    #[test]
    fn unknown_words_are_named() {
        let error = |text: &str| text.parse::<ProgressModel>().unwrap_err();
        assert_eq!(error("fairly"), ProgressModelError::UnknownModel("fairly".to_owned()));
        assert_eq!(error("qf=obe,sg"), ProgressModelError::UnknownModel(String::new()));
        assert_eq!(error("dv=obe"), ProgressModelError::UnknownLevel("dv".to_owned()));
        assert_eq!(error("qf=obe,qf=hsa"), ProgressModelError::Twice("qf".to_owned()));
    }
}
