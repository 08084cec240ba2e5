//! Mutations of the progress semantics. Each changes a verdict of the corpus.

use litmus::Test;

use model::Model;
use model::internals::{ProgressSemantics, ThreadStatus, decide_termination};
use model::progress::{
    DecidingMemory, Fairness, PROGRESS_GUARANTEES, ProgressGuarantee, ProgressLimits, ProgressModel,
    check_termination,
};

fn progress_corpus() -> Vec<(String, Test)> {
    let parsed =
        |entry: litmus::corpus::EmbeddedFile| (litmus::parse(entry.text, &entry.id).unwrap(), entry.id);
    litmus::corpus::progress_tests().into_iter().map(parsed).map(|(test, id)| (id, test)).collect()
}

/// The verdicts of the corpus under some progress models.
fn collect_verdicts(
    models: &[&str],
    definition: ProgressSemantics,
    fairness: Fairness,
) -> Vec<(String, Option<bool>)> {
    let memory = Model::shipped("vulkan").unwrap().unwrap();
    let models: Vec<ProgressModel> = models.iter().map(|name| name.parse().unwrap()).collect();
    let mut verdicts = Vec::new();
    for (id, test) in progress_corpus() {
        let answers =
            decide_termination(&test, &memory, &models, definition, fairness, &ProgressLimits::default())
                .unwrap();
        for (model, answer) in models.iter().zip(answers) {
            verdicts.push((format!("{id} under {model}"), answer.terminates));
        }
    }
    verdicts
}

/// Returns the number of verdicts that differ from the standard semantics.
fn count_changed_verdicts(models: &[&str], changed: ProgressSemantics) -> usize {
    let standard = collect_verdicts(models, ProgressSemantics::STANDARD, Fairness::Weak);
    let changed = collect_verdicts(models, changed, Fairness::Weak);
    standard.iter().zip(&changed).filter(|(standard, changed)| standard != changed).count()
}

fn with_owed_members(
    obligated_members: fn(ProgressGuarantee, &[ThreadStatus]) -> Vec<bool>,
) -> ProgressSemantics {
    ProgressSemantics { obligated_members, ..ProgressSemantics::STANDARD }
}

#[test]
fn strong_fairness_is_not_weak() {
    let models = ["fair", "lobe", "hsa-obe", "hsa", "obe"];
    let weak = collect_verdicts(&models, ProgressSemantics::STANDARD, Fairness::Weak);
    let strong = collect_verdicts(&models, ProgressSemantics::STANDARD, Fairness::Strong);
    assert!(weak.iter().zip(&strong).any(|(weak, strong)| weak != strong));
    for ((id, weak), (_, strong)) in weak.iter().zip(&strong) {
        assert!(*weak != Some(true) || *strong == Some(true), "{id}: what ends weakly ends strongly");
    }
}

#[test]
fn a_hang_must_be_fair() {
    let nobody = ProgressSemantics {
        obligated_members: |_, members| vec![false; members.len()],
        some_member_progresses: false,
        ..ProgressSemantics::STANDARD
    };
    assert!(count_changed_verdicts(&["fair"], nobody) > 0);
}

#[test]
fn lobe_counts_ended_threads_as_evidence() {
    let changed = with_owed_members(|_, members| {
        let highest = members.iter().rposition(|member| member.started && !member.ended);
        (0..members.len()).map(|index| highest.is_some_and(|highest| index <= highest)).collect()
    });
    assert!(count_changed_verdicts(&["lobe"], changed) > 0);
}

#[test]
fn lobe_guarantees_the_highest_started_thread() {
    let changed = with_owed_members(|_, members| {
        let highest = members.iter().rposition(|member| member.started);
        (0..members.len()).map(|index| highest.is_some_and(|highest| index < highest)).collect()
    });
    assert!(count_changed_verdicts(&["lobe"], changed) > 0);
}

#[test]
fn lobe_considers_lower_threads() {
    let changed = with_owed_members(|_, members| {
        let lowest = members.iter().position(|member| member.started);
        (0..members.len()).map(|index| lowest.is_some_and(|lowest| index >= lowest)).collect()
    });
    assert!(count_changed_verdicts(&["lobe"], changed) > 0);
}

#[test]
fn hsa_guarantees_the_next_thread_after_the_lowest_has_ended() {
    let changed = with_owed_members(|_, members| (0..members.len()).map(|index| index == 0).collect());
    assert!(count_changed_verdicts(&["hsa"], changed) > 0);
}

#[test]
fn hsa_starts_threads() {
    let changed = with_owed_members(|_, members| {
        let lowest = members.iter().position(|member| member.started && member.schedulable);
        (0..members.len()).map(|index| lowest == Some(index)).collect()
    });
    assert!(count_changed_verdicts(&["hsa"], changed) > 0);
}

#[test]
fn hsa_guarantees_the_lowest_thread() {
    let changed = with_owed_members(|_, members| {
        let highest = members.iter().rposition(|member| member.schedulable);
        (0..members.len()).map(|index| highest == Some(index)).collect()
    });
    assert!(count_changed_verdicts(&["hsa"], changed) > 0);
}

#[test]
fn hsa_obe_is_stronger_than_hsa_and_obe() {
    assert!(
        count_changed_verdicts(
            &["hsa-obe"],
            with_owed_members(|_, members| ProgressGuarantee::Obe.obligated_members(members))
        ) > 0
    );
    assert!(
        count_changed_verdicts(
            &["hsa-obe"],
            with_owed_members(|_, members| ProgressGuarantee::Hsa.obligated_members(members))
        ) > 0
    );
}

#[test]
fn obe_guarantees_every_started_thread() {
    assert!(count_changed_verdicts(&["obe"], with_owed_members(|_, members| vec![false; members.len()])) > 0);
}

#[test]
fn progress_of_a_group_is_progress_of_a_member() {
    let changed = ProgressSemantics { some_member_progresses: false, ..ProgressSemantics::STANDARD };
    assert!(count_changed_verdicts(&["sg=unfair", "wg=unfair", "qf=obe,sg=unfair"], changed) > 0);
}

#[test]
fn hierarchy_levels_differ() {
    let models = ["fair", "qf=obe,sg=hsa", "qf=hsa,sg=unfair", "sg=hsa", "sg=obe", "wg=hsa", "wg=obe"];
    let verdicts = collect_verdicts(&models, ProgressSemantics::STANDARD, Fairness::Weak);
    insta::assert_snapshot!(
        verdicts
            .chunks(models.len())
            .map(|row| {
                let (id, _) = row[0].0.split_once(" under ").unwrap();
                let ends: Vec<&str> = models
                    .iter()
                    .zip(row)
                    .filter(|(_, row)| row.1 == Some(true))
                    .map(|(model, _)| *model)
                    .collect();
                format!("{id}: {}", ends.join(" "))
            })
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn each_assumption_about_weak_memory_matters() {
    let memory = Model::shipped("vulkan").unwrap().unwrap();
    let sc = Model::shipped("sc").unwrap().unwrap();
    let fair = ProgressModel::uniform(ProgressGuarantee::Fair);
    for (id, decides) in [
        ("progress/mp-wait-relaxed", DecidingMemory::Relaxed),
        ("progress/sb-wait", DecidingMemory::Relaxed),
        ("progress/lb-wait", DecidingMemory::Axioms),
    ] {
        let (_, test) = progress_corpus().into_iter().find(|(known, _)| known == id).unwrap();
        let weak =
            check_termination(&test, &memory, &fair, Fairness::Weak, &ProgressLimits::default()).unwrap();
        assert_eq!((weak.memory, weak.terminates), (decides, Some(false)), "{id}");
        let strong =
            check_termination(&test, &sc, &fair, Fairness::Weak, &ProgressLimits::default()).unwrap();
        assert_eq!(strong.terminates, Some(true), "{id} under sequential consistency");
    }
}

#[test]
fn exceeded_bounds_leave_termination_unknown() {
    let (_, test) = progress_corpus().into_iter().find(|(id, _)| id == "progress/mutex").unwrap();
    let memory = Model::shipped("vulkan").unwrap().unwrap();
    let fair = ProgressModel::uniform(ProgressGuarantee::Fair);
    let limits = ProgressLimits { max_states: 5, ..ProgressLimits::default() };
    let answer = check_termination(&test, &memory, &fair, Fairness::Weak, &limits).unwrap();
    assert_eq!((answer.terminates, answer.details.as_deref()), (None, Some("more than 5 states")));
}

#[test]
fn a_bounded_answer_names_its_bound() {
    let writes = "st.atom.dv.sc0 x, 1 | LC00: ;\n".to_owned()
        + &(2..9).map(|value| format!("st.atom.dv.sc0 x, {value} | ;\n")).collect::<String>();
    let text = format!(
        "VULKAN t\n{{ x = 0; y = 0; }}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n{writes}\
         rmw.atom.dv.sc0 r0, y, 1 | rmw.atom.dv.sc0 r0, y, 0 ;\n| ld.atom.dv.sc0 r1, x ;\n| bne r1, 8, LC00 ;\n\
         exists (P1:r1 == 8)"
    );
    let test = litmus::parse(&text, "t").unwrap();
    let memory = Model::shipped("vulkan").unwrap().unwrap();
    let fair = ProgressModel::uniform(ProgressGuarantee::Fair);
    let answer =
        check_termination(&test, &memory, &fair, Fairness::Weak, &ProgressLimits::default()).unwrap();
    assert_eq!((answer.memory, answer.terminates), (DecidingMemory::Relaxed, Some(true)));
    assert_eq!(answer.details.as_deref(), Some("within histories of 6 writes"));
}

#[test]
fn schedules_are_runs() {
    let memory = Model::shipped("vulkan").unwrap().unwrap();
    for (id, test) in progress_corpus() {
        for (_, promise) in PROGRESS_GUARANTEES {
            let model = ProgressModel::uniform(promise);
            let answer =
                check_termination(&test, &memory, &model, Fairness::Weak, &ProgressLimits::default())
                    .unwrap();
            if answer.terminates != Some(false) || answer.memory == DecidingMemory::Axioms {
                assert!(answer.schedule.is_empty(), "{id}");
                continue;
            }
            let stuck = answer.details.as_ref().unwrap().contains("barrier");
            assert!(stuck || answer.schedule.iter().any(|turn| turn.repeats), "{id} under {model}");
            let first_repeat = answer.schedule.iter().position(|turn| turn.repeats);
            let rest = &answer.schedule[first_repeat.unwrap_or(answer.schedule.len())..];
            assert!(rest.iter().all(|turn| turn.repeats), "{id}: the cycle comes last");
        }
    }
}

/// The barrier waits for different threads in different executions.
#[test]
fn a_barrier_of_a_subgroup_under_a_branch_is_refused() {
    let test = |branch: &str| {
        let rows = [branch, "cbar.execsg.sg 0", "LC00:"].map(|row| format!("{row} | {row} ;"));
        let head = "VULKAN T\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 ;";
        litmus::parse(&format!("{head}\n{}\nexists (x == 0)", rows.join("\n")), "T").unwrap()
    };
    let memory = Model::shipped("vulkan").unwrap().unwrap();
    let answer = |branch: &str| {
        let models = ["fair".parse().unwrap()];
        decide_termination(
            &test(branch),
            &memory,
            &models,
            ProgressSemantics::STANDARD,
            Fairness::Weak,
            &ProgressLimits::default(),
        )
        .map(|answers| answers[0].terminates)
        .map_err(|error| error.to_string())
    };
    assert_eq!(answer(""), Ok(Some(true)));
    let refused = "barriers of a subgroup under branches are not available with `--progress`".to_owned();
    assert_eq!(answer("beq r0, 1, LC00"), Err(refused));
}
