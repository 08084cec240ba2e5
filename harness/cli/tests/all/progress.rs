//! Forward progress on the command line: the suite, the scheduler of the simulated GPU, claims, and failures.

use serde_json::Value;

use crate::common::{Ran, assert_valid, schemas, software_drivers, vk_litmus};

fn run(arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let mut command = vk_litmus(["run", "--format", "json", "--seed", "1"]);
    command.args(arguments).current_dir(folder.path());
    Ran::run(&mut command)
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

#[test]
fn the_simulated_gpu_guarantees_exactly_its_progress_model() {
    let tests = ["progress/handoff-up", "progress/mutex", "progress/handoff-down"];
    let ran = run(&[&["--device", "sim", "--progress", "obe"], &tests[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines = ran.json_lines();
    assert_eq!(lines.len(), 3);
    for line in &lines {
        for schema in schemas("run.schema.json", "run.schema.json") {
            assert_valid(&schema, line);
        }
        let progress = &line["progress"];
        assert!(!strings(&progress["refutes"]).contains(&"obe"), "{line:#}");
        let counted: u64 =
            line["outcomes"].as_array().unwrap().iter().map(|o| o["count"].as_u64().unwrap()).sum();
        assert_eq!(counted, line["instances"].as_u64().unwrap());
        let ends = strings(&progress["ends_under"]).contains(&"obe");
        assert_eq!(ends, progress["stuck"] == 0, "{line:#}");
    }
    let up = lines.iter().find(|line| line["id"] == "progress/handoff-up@plain").unwrap();
    assert_eq!(strings(&up["progress"]["refutes"]), ["fair", "lobe", "hsa-obe", "hsa"]);
    let hang = &up["progress"]["hangs"][0]["threads"];
    assert_eq!((&hang[0]["state"], &hang[1]["state"]), (&"never-started".into(), &"waiting".into()));
    assert_eq!(hang[1]["line"], 9);
}

#[test]
fn the_seed_determines_the_schedule() {
    let run_once = || {
        let ran = run(&["--device", "sim", "--progress", "hsa", "progress/mutex"]);
        let line = ran.json_lines().remove(0);
        (line["progress"]["runs"].clone(), line["progress"]["stuck"].clone(), line["detail"].clone())
    };
    assert_eq!(run_once(), run_once());
}

#[test]
fn a_broken_claim_is_a_violation() {
    let folder = tempfile::tempdir().unwrap();
    let expect = folder.path().to_str().unwrap();
    let claimed = |claim: &str| {
        std::fs::write(folder.path().join("sim-progress.txt"), claim).unwrap();
        run(&["--device", "sim", "--progress", "obe", "--expect", expect, "progress/handoff-up"])
    };
    let refuted = claimed("# Too much.\nhsa\n");
    assert_eq!(refuted.code, 1, "{}", refuted.stderr);
    let line = &refuted.json_lines()[0];
    assert_eq!(line["verdict"], "violates");
    assert!(line["detail"].as_str().unwrap().ends_with("expected hsa"), "{line:#}");
    let confirmed = claimed("obe");
    assert_eq!(
        (confirmed.code, &confirmed.json_lines()[0]["verdict"]),
        (0, &"conforms".into()),
        "{}",
        confirmed.stderr
    );
    let wrong = claimed("obeying");
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.messages().contains("unknown progress model `obeying`"), "{}", wrong.stderr);
}

#[test]
fn invalid_progress_requests_are_refused_by_name() {
    for (arguments, says) in [
        (&["--progress", "often", "--device", "sim"][..], "unknown progress model `often`"),
        (
            &["--progress", "obe", "--fault", "hang"],
            "`--fault` with tests of forward progress is not available",
        ),
        (
            &["--suite", "progress", "--device", "sim", "progress/mutex@sideways"],
            "expected a placement after `@`",
        ),
        (&["--suite", "progres", "--device", "sim"], "progress"),
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_racy_program_is_undefined() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("racy.litmus");
    let text = "VULKAN racy\n{ x = 0; y = 0; }\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n\
                st.nonpriv.sc0 x, 1 | LC00: ;\n st.atom.dv.sc0 y, 1 | ld.atom.dv.sc0 r0, y ;\n\
                | bne r0, 1, LC00 ;\n | ld.nonpriv.sc0 r1, x ;\nexists (P1:r1 == 0)";
    std::fs::write(&path, text).unwrap();
    let ran = run(&["--device", "sim", "--progress", "obe", path.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json_lines()[0]["verdict"], "undefined");
}

#[test]
fn waiting_subgroup_lanes_hang_on_software_drivers_and_are_released() {
    for driver in software_drivers() {
        let tests = ["progress/handoff-down.lanes@plain", "progress/own-value-comes-back@plain"];
        let ran =
            run(&[&["--suite", "progress", "--device", driver, "--instances", "2"], &tests[..]].concat());
        assert_eq!(ran.code, 0, "{driver}: {}", ran.stderr);
        let lines = ran.json_lines();
        let line = lines.iter().find(|line| line["id"] == tests[0]).unwrap();
        let progress = &line["progress"];
        assert_eq!((&progress["runs"], &progress["stuck"]), (&2.into(), &2.into()), "{line:#}");
        assert_eq!(progress["level"], "sg");
        let other = lines.iter().find(|line| line["id"] == tests[1]).unwrap();
        assert_eq!(other["progress"]["stuck"], 0, "{other:#}");
    }
}

#[test]
fn the_suite_is_never_part_of_another() {
    for suite in ["quick", "full"] {
        let ran = Ran::run(&mut vk_litmus(["check", "--suite", suite, "--format", "json"]));
        assert!(ran.json_lines().iter().all(|line| !line["id"].as_str().unwrap().starts_with("progress/")));
    }
}
