//! Progress models as a scheduler takes them: whom each level of the device owes that it goes on.
//!
//! Written from the definitions, apart from the checker that the same names stand for: the two are compared in tests.

use std::str::FromStr;

/// What a group owes its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgressGuarantee {
    /// All of them.
    Fair,
    /// Whoever is not above a member that has taken a step, now or once.
    Lobe,
    /// The lowest that can go on, and whoever has taken a step.
    HsaObe,
    /// The lowest that can go on.
    Hsa,
    /// Whoever has taken a step.
    Obe,
    /// Nobody in particular.
    Unfair,
}

const NAMES: [(&str, ProgressGuarantee); 6] = [
    ("fair", ProgressGuarantee::Fair),
    ("lobe", ProgressGuarantee::Lobe),
    ("hsa-obe", ProgressGuarantee::HsaObe),
    ("hsa", ProgressGuarantee::Hsa),
    ("obe", ProgressGuarantee::Obe),
    ("unfair", ProgressGuarantee::Unfair),
];

/// A promise for each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgressModel {
    /// Of the device to queue families, of these to workgroups, of these to subgroups, of these to invocations.
    levels: [ProgressGuarantee; 4],
}

/// Text that is no progress model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no progress model `{0}`: expected fair, lobe, hsa-obe, hsa, obe or unfair, or one a level as in `qf=obe,sg=hsa`"
)]
pub struct UnknownProgressModel(String);

impl FromStr for ProgressModel {
    type Err = UnknownProgressModel;

    /// One name for all levels, or one a level; levels that are not named are fair.
    fn from_str(text: &str) -> Result<ProgressModel, UnknownProgressModel> {
        let unknown = || UnknownProgressModel(text.to_owned());
        let named = |name: &str| NAMES.iter().find(|(known, _)| *known == name).map(|(_, promise)| *promise);
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

/// Where an invocation or a group of them stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedulability {
    /// It has taken a step, or some member has.
    pub started: bool,
    /// It can take one now, or some member can.
    pub ready: bool,
    /// It goes on for ever in what is asked about, or is owed nothing.
    pub served: bool,
}

impl ProgressGuarantee {
    fn owed_members(self, members: &[Schedulability]) -> Vec<bool> {
        let lowest = members.iter().position(|member| member.ready);
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
    /// Whether every promise is kept to the invocations at these places (queue family, workgroup, subgroup, lane, sorted)
    /// where each stands so: `served` says that it goes on.
    pub(crate) fn is_satisfied(&self, places: &[[u32; 4]], standings: &[Schedulability]) -> bool {
        self.evaluate_level(0, places, standings).served
    }

    fn evaluate_level(
        &self,
        level: usize,
        places: &[[u32; 4]],
        standings: &[Schedulability],
    ) -> Schedulability {
        let Some(promise) = self.levels.get(level) else {
            let own = standings.first().copied().unwrap_or_default();
            return Schedulability { served: !own.ready || own.served, ..own };
        };
        let mut members = Vec::new();
        let mut from = 0;
        for same in places.chunk_by(|left, right| left[level] == right[level]) {
            let to = from + same.len();
            members.push(self.evaluate_level(level + 1, same, standings.get(from..to).unwrap_or_default()));
            from = to;
        }
        let owed = promise.owed_members(&members);
        let demanded = members.iter().zip(owed).all(|(member, owed)| !owed || member.served);
        // As long as anyone can go on, someone does.
        let ready = members.iter().any(|member| member.ready);
        let someone = !ready || members.iter().any(|member| member.ready && member.served);
        let started = members.iter().any(|member| member.started);
        Schedulability { started, ready, served: demanded && someone }
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
    fn each_model_owes_its_members() {
        let stands = |started, ready, served| Schedulability { started, ready, served };
        // Three workgroups: the lowest was never started, the middle one goes round, the top one has ended.
        let places = [[0, 0, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0]];
        let seen = [stands(false, true, false), stands(true, true, true), stands(true, false, false)];
        let kept: Vec<&str> = NAMES
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| progress(name).is_satisfied(&places, &seen))
            .collect();
        assert_eq!(kept, ["obe", "unfair"]);
        // Nobody goes on though two could: not even an unfair device does that.
        let still = [stands(false, true, false), stands(true, true, false), stands(true, false, false)];
        assert!(!progress("unfair").is_satisfied(&places, &still));
    }

    #[test]
    fn waiting_invocations_owe_no_progress() {
        let stands = |started, ready, served| Schedulability { started, ready, served };
        // Two lanes of a workgroup, the lower one in a barrier: the higher one is pulled along, or the workgroup does not
        // go on; another workgroup that does is enough for an unfair queue family, and not for a fair one.
        let places = [[0, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]];
        let seen = [stands(true, false, false), stands(false, true, false), stands(true, true, true)];
        assert!(progress("qf=unfair,sg=unfair").is_satisfied(&places, &seen));
        assert!(!progress("qf=obe,sg=unfair").is_satisfied(&places, &seen));
        assert!(!progress("fair").is_satisfied(&places, &seen));
    }
}
