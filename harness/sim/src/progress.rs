//! Progress models for the scheduler: which invocations each level of the device guarantees to advance.
//!
//! The models are those of Sorensen et al., "Specifying and Testing GPU Workgroup Progress Models", OOPSLA
//! 2021 (<https://doi.org/10.1145/3485508>). The code is independent of the checker for the same models;
//! tests compare the two.

use std::str::FromStr;

/// The guarantee that a group gives its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgressGuarantee {
    /// All members advance.
    Fair,
    /// Members not above some member that has taken a step advance (LOBE).
    Lobe,
    /// The lowest ready member advances, and all that have taken a step.
    HsaObe,
    /// The lowest ready member advances.
    Hsa,
    /// Members that have taken a step advance (occupancy-bound execution).
    Obe,
    /// No particular member is guaranteed to advance.
    Unfair,
}

const GUARANTEE_NAMES: [(&str, ProgressGuarantee); 6] = [
    ("fair", ProgressGuarantee::Fair),
    ("lobe", ProgressGuarantee::Lobe),
    ("hsa-obe", ProgressGuarantee::HsaObe),
    ("hsa", ProgressGuarantee::Hsa),
    ("obe", ProgressGuarantee::Obe),
    ("unfair", ProgressGuarantee::Unfair),
];

/// A progress guarantee for each level of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgressModel {
    /// The guarantees of the device to queue families, of these to workgroups, then to subgroups and to
    /// invocations.
    levels: [ProgressGuarantee; 4],
}

/// The error for text that is not a progress model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown progress model `{0}`: expected fair, lobe, hsa-obe, hsa, obe or unfair, or one per level as \
     in `qf=obe,sg=hsa`"
)]
pub struct UnknownProgressModel(String);

impl FromStr for ProgressModel {
    type Err = UnknownProgressModel;

    /// Parses one name for all levels, or one per level; unnamed levels are fair.
    fn from_str(text: &str) -> Result<ProgressModel, UnknownProgressModel> {
        let unknown = || UnknownProgressModel(text.to_owned());
        let named = |name: &str| {
            GUARANTEE_NAMES.iter().find(|(known, _)| *known == name).map(|(_, promise)| *promise)
        };
        if !text.contains('=') {
            return named(text).map(|promise| ProgressModel { levels: [promise; 4] }).ok_or_else(unknown);
        }
        let mut levels = [ProgressGuarantee::Fair; 4];
        for part in text.split(',') {
            let (level, name) = part.split_once('=').ok_or_else(unknown)?;
            let place = ["qf", "wg", "sg"].iter().position(|known| *known == level).ok_or_else(unknown)?;
            levels[place + 1] = named(name).ok_or_else(unknown)?;
        }
        Ok(ProgressModel { levels })
    }
}

/// The state of an invocation or a group in the fairness check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedulability {
    /// It, or some member, has taken a step.
    pub started: bool,
    /// It, or some member, can take a step now.
    pub ready: bool,
    /// True if it takes infinitely many steps in the examined schedule, or has no guarantee of that.
    pub served: bool,
}

impl ProgressGuarantee {
    fn guaranteed_members(self, members: &[Schedulability]) -> Vec<bool> {
        let lowest = members.iter().position(|member| member.ready);
        // LOBE: a started member guarantees progress to itself and all lower ones.
        let last_started = members.iter().rposition(|member| member.started);
        members
            .iter()
            .enumerate()
            .map(|(index, member)| {
                let is_lowest = lowest == Some(index);
                match self {
                    ProgressGuarantee::Fair => true,
                    ProgressGuarantee::Lobe => last_started.is_some_and(|last| index <= last),
                    ProgressGuarantee::HsaObe => is_lowest || member.started,
                    ProgressGuarantee::Hsa => is_lowest,
                    ProgressGuarantee::Obe => member.started,
                    ProgressGuarantee::Unfair => false,
                }
            })
            .collect()
    }
}

impl ProgressModel {
    /// Returns true if an infinite schedule satisfies the guarantees. `places` (queue family, workgroup,
    /// subgroup, lane) are sorted; `served` marks the invocations that advance in the schedule.
    pub(crate) fn is_satisfied(&self, places: &[[u32; 4]], states: &[Schedulability]) -> bool {
        self.evaluate_level(0, places, states).served
    }

    fn evaluate_level(&self, level: usize, places: &[[u32; 4]], states: &[Schedulability]) -> Schedulability {
        let Some(guarantee) = self.levels.get(level) else {
            let own = states.first().copied().unwrap_or_default();
            // An invocation that cannot take a step violates no guarantee.
            return Schedulability { served: !own.ready || own.served, ..own };
        };
        let mut members = Vec::new();
        let mut from = 0;
        for same in places.chunk_by(|left, right| left[level] == right[level]) {
            let to = from + same.len();
            members.push(self.evaluate_level(level + 1, same, states.get(from..to).unwrap_or_default()));
            from = to;
        }
        // A nested group counts as one member of its parent, so guarantees compose level by level.
        let owed = guarantee.guaranteed_members(&members);
        let demanded = members.iter().zip(owed).all(|(member, owed)| !owed || member.served);
        // Every level makes minimal progress: if some member is ready, some ready member advances.
        let ready = members.iter().any(|member| member.ready);
        let makes_progress = !ready || members.iter().any(|member| member.ready && member.served);
        let started = members.iter().any(|member| member.started);
        Schedulability { started, ready, served: demanded && makes_progress }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(text: &str) -> ProgressModel {
        text.parse().unwrap()
    }

    #[test]
    fn model_names_parse() {
        assert_eq!(progress("obe").levels, [ProgressGuarantee::Obe; 4]);
        assert_eq!(
            progress("qf=obe,sg=hsa").levels,
            [
                ProgressGuarantee::Fair,
                ProgressGuarantee::Obe,
                ProgressGuarantee::Fair,
                ProgressGuarantee::Hsa
            ]
        );
        for wrong in ["", "fairly", "qf", "dv=obe", "qf=often", "qf=obe,"] {
            assert!(wrong.parse::<ProgressModel>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_model_guarantees_its_members() {
        let state = |started, ready, served| Schedulability { started, ready, served };
        // Three workgroups: the lowest never started, the middle one loops, the top one has ended.
        let places = [[0, 0, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0]];
        let states = [state(false, true, false), state(true, true, true), state(true, false, false)];
        let satisfied: Vec<&str> = GUARANTEE_NAMES
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| progress(name).is_satisfied(&places, &states))
            .collect();
        assert_eq!(satisfied, ["obe", "unfair"]);
        // No invocation advances although two could: not even an unfair device allows that.
        let still = [state(false, true, false), state(true, true, false), state(true, false, false)];
        assert!(!progress("unfair").is_satisfied(&places, &still));
    }

    #[test]
    fn waiting_invocations_have_no_guarantee() {
        let state = |started, ready, served| Schedulability { started, ready, served };
        // Two lanes of a workgroup; the lower one waits in a barrier. Either the higher one advances, or the
        // workgroup does not. Another workgroup that advances satisfies an unfair queue family, but not a
        // fair one.
        let places = [[0, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]];
        let states = [state(true, false, false), state(false, true, false), state(true, true, true)];
        assert!(progress("qf=unfair,sg=unfair").is_satisfied(&places, &states));
        assert!(!progress("qf=obe,sg=unfair").is_satisfied(&places, &states));
        assert!(!progress("fair").is_satisfied(&places, &states));
    }
}
