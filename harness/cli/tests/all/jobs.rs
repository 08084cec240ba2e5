//! The CI jobs of `ci/jobs/` are well-formed, and their commands run here without the CI systems.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use yaml_rust2::{Yaml, YamlLoader};

use crate::common::{Ran, SHARD_VARIABLES, binary};

fn jobs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/jobs").canonicalize().unwrap()
}

fn yaml(name: &str) -> Vec<Yaml> {
    YamlLoader::load_from_str(&fs::read_to_string(jobs().join(name)).unwrap()).unwrap()
}

/// Returns bash in a folder, without variables of the CI job that runs the tests.
fn bash(folder: &Path, script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script]).current_dir(folder).env("NO_COLOR", "1");
    for variable in SHARD_VARIABLES {
        command.env_remove(variable);
    }
    command
}

fn ids(journal: &Path) -> Vec<String> {
    let text = fs::read_to_string(journal).unwrap();
    let id = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned()
    };
    text.lines().map(id).collect()
}

/// Replaces time limits by numbers of instances and the suite by a small one, so that the result does not
/// depend on the speed of the machine.
fn shorten_script(script: &str) -> String {
    let script = script.replace("--time 5m", "--instances 100").replace("--suite full", "'sb/*' 'mp/*'");
    assert!(script.contains("--instances 100"), "{script}");
    script
}

#[test]
fn the_workflow_runs_every_part_on_both_drivers_and_reports() {
    let workflow = &yaml("github-actions.yml")[0];
    let matrix = &workflow["jobs"]["run"]["strategy"]["matrix"];
    let list = |key: &str| -> Vec<String> {
        matrix[key].as_vec().unwrap().iter().map(|value| value.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(list("device"), ["lavapipe", "swiftshader"]);
    let parts = list("part");
    let step = |job: &str, name: &str| -> String {
        let steps = workflow["jobs"][job]["steps"].as_vec().unwrap();
        let step = steps.iter().find(|step| step["name"].as_str() == Some(name)).unwrap();
        step["run"].as_str().unwrap().to_owned()
    };

    // Runs the commands of the steps on the simulated GPU.
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("target/release")).unwrap();
    std::os::unix::fs::symlink(binary(), folder.path().join("target/release/vk-litmus")).unwrap();
    std::os::unix::fs::symlink(jobs().join("../../results"), folder.path().join("results")).unwrap();
    let mut test_ids = Vec::new();
    for part in &parts {
        let mut command = bash(folder.path(), &shorten_script(&step("run", "Run")));
        let ran = Ran::run(
            command.env("VK_LITMUS_DEVICE", "sim").env("VK_LITMUS_SHARD", part).env("GITHUB_RUN_NUMBER", "7"),
        );
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(
            ran.stderr.contains(&format!("part {part} of the tests, by VK_LITMUS_SHARD")),
            "{}",
            ran.stderr
        );
        let number = part.split('/').next().unwrap();
        test_ids.extend(ids(&folder.path().join(format!("results-sim-{number}/run.jsonl"))));
    }
    let unique: BTreeSet<&String> = test_ids.iter().collect();
    assert!(unique.len() == test_ids.len() && test_ids.len() > 20, "{test_ids:?}");

    fs::create_dir(folder.path().join("parts")).unwrap();
    for part in ["results-sim-1", "results-sim-2"] {
        fs::rename(folder.path().join(part), folder.path().join("parts").join(part)).unwrap();
    }
    let summary = folder.path().join("summary.md");
    let mut command = bash(folder.path(), &step("report", "Report"));
    let ran = Ran::run(command.env("GITHUB_STEP_SUMMARY", &summary));
    assert_eq!(ran.code, 0, "{ran:?}");
    for file in ["report.html", "junit.xml", "report.md", "summary.md"] {
        assert!(fs::metadata(folder.path().join(file)).unwrap().len() > 0, "{file}");
    }
    let junit = fs::read_to_string(folder.path().join("junit.xml")).unwrap();
    assert!(junit.contains(&format!("tests=\"{}\"", test_ids.len())), "{junit}");
}

/// Slurm starts the script with only the variables of an array job.
#[test]
fn the_slurm_script_runs_each_part_once_and_resumes() {
    let script = jobs().join("slurm-array.sh");
    let text = fs::read_to_string(&script).unwrap();
    assert!(text.contains("#SBATCH --array=1-4") && text.contains("#SBATCH --requeue"));
    let folder = tempfile::tempdir().unwrap();
    // The script cannot select a small suite, so a wrapper of the program reduces the instances.
    let program = folder.path().join("program");
    let wrapped = format!(
        "#!/bin/bash\nargs=(\"$@\")\nfor i in \"${{!args[@]}}\"; do case ${{args[i]}} in --time) args[i]=--instances; args[i+1]=100;; esac; done\nexec '{}' \"${{args[@]}}\"\n",
        binary().display()
    );
    fs::write(&program, wrapped).unwrap();
    Command::new("chmod").arg("+x").arg(&program).status().unwrap();
    let task = |number: &str| {
        let mut command = bash(folder.path(), &format!("exec '{}'", script.display()));
        command.env("VK_LITMUS", &program).env("DEVICE", "sim").env("SUITE", "quick");
        command.env("SLURM_ARRAY_JOB_ID", "7").env("SLURM_ARRAY_TASK_ID", number);
        command
            .env("SLURM_ARRAY_TASK_MIN", "1")
            .env("SLURM_ARRAY_TASK_MAX", "4")
            .env("SLURM_ARRAY_TASK_COUNT", "4");
        let ran = Ran::run(&mut command);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(
            ran.stderr.contains(&format!("part {number}/4 of the tests, by SLURM_ARRAY_TASK_ID")),
            "{ran:?}"
        );
        ids(&folder.path().join(format!("vk-litmus-7/part-{number}/run.jsonl")))
    };
    let parts = ["1", "2", "3", "4"].map(task);
    let mut test_ids: Vec<String> = parts.concat();
    let number = test_ids.len();
    test_ids.sort();
    test_ids.dedup();
    assert!(test_ids.len() == number && number > 80, "{number}");
    assert_eq!(task("2").len(), parts[1].len(), "a task that is requeued runs nothing twice");
}

#[test]
fn kubernetes_pods_run_their_shards() {
    let documents = yaml("kubernetes-job.yaml");
    let (job, claim) = (&documents[0], &documents[1]);
    assert_eq!(job["spec"]["completionMode"].as_str(), Some("Indexed"));
    let completions = job["spec"]["completions"].as_i64().unwrap();
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let environment = container["env"].as_vec().unwrap();
    let counted =
        environment.iter().find(|variable| variable["name"].as_str() == Some("JOB_COMPLETIONS")).unwrap();
    assert_eq!(counted["value"].as_str(), Some(completions.to_string().as_str()));
    let volume = &job["spec"]["template"]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"];
    assert_eq!(volume.as_str(), claim["metadata"]["name"].as_str());

    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results").to_str().unwrap().to_owned();
    let arguments: Vec<String> = container["args"]
        .as_vec()
        .unwrap()
        .iter()
        .map(|word| match word.as_str().unwrap() {
            "full" => "quick".to_owned(),
            "lavapipe" => "sim".to_owned(),
            "--time" => "--instances".to_owned(),
            "10m" => "100".to_owned(),
            other => other
                .replace("/results", &results)
                .replace("$(JOB_NAME)", "try")
                .replace("$(JOB_COMPLETION_INDEX)", "2"),
        })
        .collect();
    let mut command = bash(folder.path(), "exec \"$0\" \"$@\"");
    command.arg(binary()).args(arguments).env("JOB_COMPLETION_INDEX", "2");
    let ran = Ran::run(command.env("JOB_COMPLETIONS", completions.to_string()));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.messages().contains("part 3/4 of the tests, by JOB_COMPLETION_INDEX"), "{}", ran.stderr);
    assert!(ids(&folder.path().join("results/try/part-2/run.jsonl")).len() > 20);
}

/// Without a nightly toolchain, the script names every missing part and fails.
#[test]
fn the_sanitizers_name_what_is_missing() {
    let workflow = &yaml("github-sanitize.yml")[0];
    assert!(workflow["on"]["schedule"][0]["cron"].as_str().unwrap().ends_with("* * 0"));
    let steps = workflow["jobs"]["sanitize"]["steps"].as_vec().unwrap();
    assert_eq!(steps.last().unwrap()["run"].as_str(), Some("ci/sanitize \"$SANITIZER\""));
    let tools = workflow["jobs"]["sanitize"]["strategy"]["matrix"]["tool"].as_vec().unwrap();
    for (tool, name) in tools.iter().zip(["Miri", "AddressSanitizer"]) {
        let mut command = bash(&jobs().join("../.."), steps.last().unwrap()["run"].as_str().unwrap());
        command.env("SANITIZER", tool.as_str().unwrap()).env("VK_LITMUS_NIGHTLY", "no-such-toolchain");
        let ran = Ran::run(&mut command);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.stderr.starts_with(&format!("missing: {name}: `rustup ")), "{ran:?}");
    }
}

/// Runs the check of the weekly job with one test; the folder that it builds may be missing.
#[test]
fn the_weekly_workflow_runs_the_compilers_of_every_vendor() {
    let workflow = &yaml("github-compilers.yml")[0];
    assert!(workflow["on"]["schedule"][0]["cron"].as_str().unwrap().ends_with("* * 6"));
    let steps = workflow["jobs"]["compilers"]["steps"].as_vec().unwrap();
    let script = |name: &str| {
        let step = steps.iter().find(|step| step["name"].as_str() == Some(name)).unwrap();
        step["run"].as_str().unwrap().to_owned()
    };
    assert_eq!(script("Compilers"), "ci/compilers");
    if std::env::var_os("VK_LITMUS_COMPILERS").is_none_or(|folder| folder.is_empty()) {
        println!(
            "1 skipped: VK_LITMUS_COMPILERS names no folder of ci/compilers: the weekly job is not tried"
        );
        return;
    }
    let orders = script("Orders");
    let program = binary().display().to_string();
    let shortened =
        orders.replace("--suite full", "mp/MP+rel-acq").replace("target/release/vk-litmus", &program);
    assert_ne!(orders, shortened);
    let folder = tempfile::tempdir().unwrap();
    let ran = Ran::run(&mut bash(folder.path(), &shortened));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = fs::read_to_string(folder.path().join("orders.jsonl")).unwrap();
    for vendor in ["radv", "nvk", "anv", "hasvk", "turnip", "honeykrisp"] {
        assert!(text.contains(&format!("\"device\":\"{vendor}:")), "{vendor}");
    }
}
