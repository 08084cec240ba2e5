//! The verdicts of the explorer on emitted code, by family.

use std::fmt::Write;

use isa::{FactTable, MachineVerdict, Profile, explore};

use crate::sample::{FAMILIES, PRINTED, allowed_but_weak, parsed, question, samples};

fn format_verdict(verdict: &MachineVerdict) -> String {
    match verdict {
        MachineVerdict::Unreachable(_) => "-".to_owned(),
        MachineVerdict::Reachable(witness) => format!("reachable {:?}", witness.outcome),
        MachineVerdict::Hazard(hazard) => format!("hazard: {hazard}"),
        MachineVerdict::Unsupported(what) => format!("unsupported: {what}"),
    }
}

/// One line per sample: the documented profile, then the paranoid one.
#[test]
fn emitted_code() {
    let facts = FactTable::shipped().unwrap();
    for family in PRINTED.into_iter().chain(FAMILIES) {
        let mut table = String::new();
        for sample in samples(family) {
            let question = question(family, &sample, &parsed(&sample));
            let [documented, paranoid] =
                [Profile::Documented, Profile::Paranoid].map(|profile| explore(&question, profile, &facts));
            writeln!(
                table,
                "{}: {} / {}",
                sample.name,
                format_verdict(&documented),
                format_verdict(&paranoid)
            )
            .unwrap();

            // An outcome that is reachable under the documented profile is reachable with fewer assumptions.
            // Every sample has a verdict.
            if let MachineVerdict::Reachable(_) = documented {
                assert!(matches!(paranoid, MachineVerdict::Reachable(_)), "{family} {}", sample.name);
            }
            assert!(
                !matches!(documented, MachineVerdict::Hazard(_) | MachineVerdict::Unsupported(_)),
                "{family} {}: {documented:?}",
                sample.name
            );
            // RDNA: merged kernels reach no forbidden outcome. GCN: only the workgroup release is not
            // cumulative.
            if sample.is_merged() && matches!(documented, MachineVerdict::Reachable(_)) {
                let old = ["tahiti", "polaris10", "vega10"].contains(&family);
                let cumulative = sample.name.contains("ISA2+rel-acqrel-acq.wg-dv")
                    || sample.name.contains("ISA2+cbar-rel-acq.atomic");
                assert!(old && cumulative, "{family} {}", sample.name);
            }
        }
        insta::assert_snapshot!(format!("verdicts-{family}"), table);
    }
}

/// The machine shows the weak behaviour of devices; otherwise unreachable outcomes would prove nothing.
#[test]
fn allowed_weak_outcomes_are_seen() {
    let facts = FactTable::shipped().unwrap();
    let mut table = String::new();
    for family in FAMILIES {
        for sample in samples(family).iter().filter(|sample| sample.is_merged()) {
            let texts = parsed(sample);
            let weak = allowed_but_weak(family, sample, &texts);
            if weak.is_empty() {
                continue;
            }
            let question = question(family, sample, &texts);
            let outcomes = isa::explore::reachable_outcomes(&question, Profile::Documented, &facts).unwrap();
            let found = weak.iter().filter(|outcome| outcomes.contains(*outcome)).count();
            writeln!(table, "{family} {}: {found} of {}", sample.name, weak.len()).unwrap();
        }
    }
    insta::assert_snapshot!("weak", table);
}

/// A witness has existing lines, ends in the outcome, and lists its assumptions.
#[test]
fn witnesses() {
    let facts = FactTable::shipped().unwrap();
    let find = |family: &str, name: &str| {
        let sample = samples(family).into_iter().find(|sample| sample.name == name).unwrap();
        let texts = parsed(&sample);
        let MachineVerdict::Reachable(witness) =
            explore(&question(family, &sample, &texts), Profile::Documented, &facts)
        else {
            panic!("{family} {name}");
        };
        let mut text = format!(
            "outcome {:?}\nassumes {}\n",
            witness.outcome,
            witness.exploration.assumptions.join(", ")
        );
        for step in &witness.steps {
            let line = texts[step.kernel]
                .instructions
                .iter()
                .find(|instruction| instruction.line == step.line)
                .unwrap();
            let (workgroup, wave) = (step.workgroup, step.wave);
            writeln!(text, "workgroup {workgroup} wave {wave}: {} [{}]", step.description, line.text)
                .unwrap();
        }
        text
    };
    insta::assert_snapshot!("witness-f1", find("vega10", "ISA2+cbar-rel-acq.atomic@merged"));
    insta::assert_snapshot!("witness-f2", find("navi31", "mp/MP+rel-acq@split.restrict"));
}
