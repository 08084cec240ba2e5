//! `run SHADER`: user shaders on the simulated GPU and the installed software drivers.

use std::path::Path;

use crate::common::{Ran, assert_valid, installed, schemas, software_drivers, vk_litmus};
use serde_json::Value;

/// Number of dispatches in a run.
const DISPATCHES: &str = "400";

fn shader(name: &str) -> String {
    format!("{}/tests/all/shaders/dispatch/{name}.spvasm", env!("CARGO_MANIFEST_DIR"))
}

fn lock() -> String {
    format!("{}/../analysis/tests/shaders/lock-right.spvasm", env!("CARGO_MANIFEST_DIR"))
}

/// The simulated GPU and the drivers.
fn devices() -> Vec<&'static str> {
    [&["sim"][..], &software_drivers()].concat()
}

fn run(device: &str, file: &str, more: &[&str]) -> (Ran, Value) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = vk_litmus(["run", file, "--device", device, "--seed", "1", "--format", "json"]);
    if !more.contains(&"--instances") && !more.contains(&"--time") {
        command.args(["--instances", DISPATCHES]);
    }
    let ran = Ran::run(command.args(more).current_dir(folder.path()));
    let mut lines = ran.json_lines();
    assert_eq!(lines.len(), 1, "{device}: {ran:?}");
    let line = lines.remove(0);
    for schema in schemas("run.schema.json", "run.schema.json") {
        // The schema of the contract has no run without a judgement.
        if line["reason"] != "not judged" || schema.ends_with("schema/run.schema.json") {
            assert_valid(&schema, &line);
        }
    }
    (ran, line)
}

fn counts(line: &Value) -> u64 {
    let sum_of = |list: &str| {
        line[list].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum::<u64>()
    };
    sum_of("outcomes") + sum_of("unexpected")
}

#[test]
fn a_correct_lock_conforms() {
    for device in devices() {
        let (ran, line) = run(device, &lock(), &["--grid", "2", "--assert", "data.count == 2"]);
        assert_eq!((ran.code, &line["verdict"]), (0, &"conforms".into()), "{device}: {ran:?}");
        assert_eq!((&line["instances"], counts(&line)), (&400.into(), 400), "{device}: {line}");
        assert_eq!(line["shader"]["judged"], true, "{line}");
        assert_eq!(line["shader"]["claim"]["broken"], 0, "{line}");
        let observed = line["outcomes"].as_array().unwrap().iter().find(|row| row["count"] == 400).unwrap();
        assert_eq!(
            (&observed["state"]["data.count"], &observed["witness"]),
            (&2.into(), &true.into()),
            "{line}"
        );
    }
}

#[test]
fn minimum_and_maximum_conform() {
    for device in devices() {
        let inputs = ["--buffer", "0.0=random:256", "--buffer", "0.1=zeros:768"];
        let (ran, line) = run(device, &shader("limits"), &inputs);
        assert_eq!((ran.code, &line["verdict"]), (0, &"conforms".into()), "{device}: {ran:?}");
        assert_eq!(line["shader"]["judged"], true, "{device}: {line}");
    }
}

/// glslang decorates members of buffers with `coherent`. Invocations leave a loop after different numbers of
/// iterations and wait at a barrier after it.
#[test]
fn locks_and_loops_of_glsl_end_on_the_simulated_gpu() {
    if !installed("glslangValidator") {
        return;
    }
    let kind = |name: &str| format!("{}/tests/all/shaders/kinds/{name}", env!("CARGO_MANIFEST_DIR"));
    let (ran, line) = run("sim", &kind("lock-workgroup.comp"), &["--grid", "3", "--subgroup-size", "4"]);
    assert_eq!((ran.code, &line["verdict"]), (0, &"conforms".into()), "{ran:?}");
    let (ran, line) = run("sim", &kind("dyn.comp"), &["--grid", "2", "--instances", "5"]);
    assert_eq!((&line["instances"], &line["reason"]), (&5.into(), &"not judged".into()), "{ran:?}");
}

/// Debug information has the source, and glslang 12 corrupts its non-ASCII text. No driver here supports
/// clustered operations.
#[test]
fn accents_and_clusters_of_glsl_run_on_the_simulated_gpu() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clusters.comp");
    let text = "#version 450
// Größe je Gruppe — four lanes, naïvely.
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(local_size_x = 8) in;
layout(binding = 0) buffer Result { uint wrong; uint right; };
void main() {
    uint lane = gl_SubgroupInvocationID, own = lane * lane + 1u, sum = 0u, least = ~0u;
    for (uint other = 0u; other < 2u; other++) {
        uint of = subgroupShuffle(own, (lane & ~1u) + other);
        sum += of;
        least = min(least, of);
    }
    bool good = subgroupClusteredAdd(own, 2u) == sum && subgroupClusteredMin(own, 2u) == least
        && subgroupClusteredXor(lane, 1u) == lane;
    if (good) atomicAdd(right, 1u); else atomicAdd(wrong, 1u);
}
";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let (ran, line) = run("sim", file, &["--assert", "Result.wrong == 0 /\\ Result.right == 8"]);
    assert_eq!((&line["instances"], &line["reason"]), (&400.into(), &"not judged".into()), "{ran:?}");
    assert_eq!(line["shader"]["claim"]["broken"], 0, "{line}");
    // A member of a block without an instance name also has a name without the block.
    let (_, line) = run("sim", file, &["--assert", "right == 7"]);
    assert_eq!(line["shader"]["claim"]["broken"], 400, "{line}");
}

#[test]
fn messages_are_judged_by_the_model() {
    for device in devices() {
        for (name, allowed) in [("message-relaxed", true), ("message", false)] {
            let (ran, line) = run(device, &shader(name), &["--grid", "2"]);
            assert_eq!((ran.code, &line["verdict"]), (0, &"conforms".into()), "{device}: {ran:?}");
            let is_stale = |row: &&Value| {
                let state = &row["state"];
                let sent = state["mail.data"] == 1 && state["mail.flag"] == 1;
                sent && state["mail.seen_flag"] == 1 && state["mail.seen_data"] == 0
            };
            let stale = line["outcomes"].as_array().unwrap().iter().find(is_stale);
            let stale = stale.unwrap_or_else(|| panic!("{line}"));
            assert_eq!((&stale["allowed"], &stale["weak"]), (&allowed.into(), &true.into()), "{line}");
            assert_eq!(counts(&line), 400, "{line}");
        }
    }
}

/// The simulated GPU shows stale values, and its faults are detected.
#[test]
fn the_simulated_gpu_is_weak_and_its_faults_are_found() {
    let stale = |line: &Value| -> u64 {
        let rows = line["outcomes"].as_array().unwrap().iter();
        rows.filter(|row| row["weak"] == true).map(|row| row["count"].as_u64().unwrap()).sum()
    };
    let (_, line) = run("sim", &shader("message-relaxed"), &["--grid", "2", "--instances", "4000"]);
    assert!(stale(&line) > 0, "{line}");
    let (ran, line) = run(
        "sim",
        &shader("message"),
        &["--grid", "2", "--instances", "4000", "--fault", "release-does-not-drain-stores"],
    );
    assert_eq!((ran.code, &line["verdict"]), (1, &"violates".into()), "{ran:?}");
    assert!(stale(&line) > 0, "{line}");
    let replay = line["replay"].as_str().unwrap();
    for words in ["--grid 2,1,1", "--device sim", "--fault release-does-not-drain-stores", "--instances 4000"]
    {
        assert!(replay.contains(words), "{replay}");
    }
}

#[test]
fn a_schedule_independent_grid_is_judged() {
    for device in devices() {
        let (ran, line) =
            run(device, &shader("reduction"), &["--buffer", "0.0=iota:256", "--instances", "200"]);
        assert_eq!((ran.code, &line["verdict"]), (0, &"conforms".into()), "{device}: {ran:?}");
        assert_eq!(line["outcomes"][0]["state"]["result.total"], 2016, "{device}: {line}");
        assert_eq!((line["outcomes"].as_array().unwrap().len(), counts(&line)), (1, 200), "{line}");
    }
}

/// Two workgroups along each axis, of 2, 3 and 2 invocations. Each invocation stores its position and reads a
/// uniform buffer.
#[test]
fn grids_have_three_dimensions_and_uniform_buffers_are_read() {
    let more = ["--grid", "2,2,2", "--buffer", "0.0=iota", "--buffer", "0.1=zeros:392", "--instances", "120"];
    for device in devices() {
        let (ran, line) = run(device, &shader("grid"), &more);
        assert_eq!((ran.code, &line["verdict"]), (0, &"conforms".into()), "{device}: {ran:?}");
        let state = &line["outcomes"][0]["state"];
        let places = (0..4).flat_map(|z| (0..6).flat_map(move |y| (0..4).map(move |x| (x, y, z))));
        let mut sum = 0;
        for (index, (x, y, z)) in places.enumerate() {
            let expected: u64 = 2 * (x + 10 * y + 100 * z) + 1;
            assert_eq!(state[format!("cells.at[{index}]")], expected, "{device}: {x} {y} {z}: {line}");
            sum += expected;
        }
        assert_eq!((&state["cells.sum"], counts(&line)), (&sum.into(), 120), "{device}: {line}");
        assert!(state["cells.wrong"].is_null(), "{device}: {line}");
    }
}

#[test]
fn contents_that_cannot_be_enumerated_never_conform() {
    for device in devices() {
        let (ran, line) = run(device, &shader("tickets"), &["--grid", "64"]);
        assert_eq!((ran.code, &line["verdict"]), (3, &"inconclusive".into()), "{device}: {ran:?}");
        assert_eq!(
            (&line["reason"], &line["shader"]["judged"]),
            (&"not judged".into(), &false.into()),
            "{line}"
        );
        assert!(line["detail"].as_str().unwrap().contains("more than 16 invocations"), "{line}");
        let contents = line["shader"]["contents"].as_array().unwrap();
        let all: u64 = contents.iter().map(|row| row["count"].as_u64().unwrap()).sum();
        assert_eq!(all + line["shader"]["others"].as_u64().unwrap(), 400, "{line}");
        assert_eq!(contents[0]["differs"]["tickets.next"], 64, "{line}");
        // Assertions are checked even if the contents are not judged. A failed one gives exit code 1.
        let (ran, line) =
            run(device, &shader("tickets"), &["--grid", "64", "--assert", "tickets.next == 63"]);
        assert_eq!((ran.code, &line["shader"]["claim"]["broken"]), (1, &400.into()), "{device}: {ran:?}");
        assert!(ran.messages().contains("failed in 400 dispatches"), "{ran:?}");
    }
}

/// Every output shows a failed assertion, and none calls contents allowed that the model did not judge.
#[test]
fn a_failed_assertion_fails_in_every_output() {
    let folder = tempfile::tempdir().unwrap();
    let run = |format: &str, assertion: &str| {
        let mut command = vk_litmus(["run", &shader("tickets"), "--device", "sim", "--seed", "1"]);
        command.args(["--instances", "40", "--grid", "64", "--format", format, "--out", format]);
        Ran::run(command.args(["--assert", assertion]).current_dir(folder.path()))
    };
    let failed = run("junit", "tickets.next == 63");
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stdout.contains("failures=\"1\"") && failed.stdout.contains("failed in 40 dispatches"));
    let report = Ran::run(vk_litmus(["report", "junit", "--out", "page.html"]).current_dir(folder.path()));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("1 assertion failed") && page.contains("not judged"), "{report:?}");
    let mut again = vk_litmus(["report", "junit", "--format", "junit", "--out", "again.xml"]);
    let report = Ran::run(again.current_dir(folder.path()));
    let again = std::fs::read_to_string(folder.path().join("again.xml")).unwrap();
    assert!(again.contains("failures=\"1\""), "{report:?}");
    // Contents that the model allows, which the assertion excludes.
    let mut judged = vk_litmus(["run", &lock(), "--device", "sim", "--instances", "200"]);
    judged.args(["--grid", "2", "--assert", "data.count == 3", "--bisect"]).current_dir(folder.path());
    let judged = Ran::run(&mut judged);
    assert!(judged.code == 1 && judged.words().contains("conforms (assertion fails)"), "{judged:?}");
    assert!(!run("csv", "tickets.next == 64").stdout.contains(",true,"));
}

#[test]
fn a_racy_shader_is_reported() {
    for device in devices() {
        let (ran, line) = run(device, &shader("racy"), &["--grid", "4"]);
        assert_eq!((ran.code, &line["verdict"]), (1, &"undefined".into()), "{device}: {ran:?}");
        let detail = line["detail"].as_str().unwrap();
        assert!(detail.starts_with("every content is allowed: race: "), "{detail}");
        assert_eq!(line["race"], "racy", "{line}");
    }
}

#[test]
fn a_hanging_shader_affects_no_other_shader() {
    let folder = tempfile::tempdir().unwrap();
    // lavapipe stops loops after a number of iterations.
    for device in devices().into_iter().filter(|device| *device != "lavapipe") {
        let mut command =
            vk_litmus(["run", &shader("hang"), &shader("message"), "--grid", "2", "--device", device]);
        let ran = Ran::run(
            command
                .args(["--seed", "1", "--instances", "200", "--format", "json"])
                .current_dir(folder.path()),
        );
        let lines = ran.json_lines();
        assert_eq!(ran.code, 3, "{device}: {ran:?}");
        assert_eq!(
            (&lines[0]["id"], &lines[0]["verdict"]),
            (&"hang:main".into(), &"inconclusive".into()),
            "{ran:?}"
        );
        assert_eq!(lines[0]["reason"], "timed out", "{device}: {ran:?}");
        assert_eq!(
            (&lines[1]["id"], &lines[1]["verdict"]),
            (&"message:main".into(), &"conforms".into()),
            "{ran:?}"
        );
    }
}

fn source(name: &str) -> String {
    format!("{}/tests/all/shaders/dispatch/{name}.comp", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn images_of_users_are_counted_in_and_stored_to() {
    if !installed("glslangValidator") {
        return;
    }
    let images = ["--image", "0.0=4x3", "--image", "1.2=64,fill=iota", "--image", "1.0=64"];
    for device in devices() {
        let (ran, line) = run(device, &source("texel-counts"), &[&["--grid", "2"], &images[..]].concat());
        assert_eq!((ran.code, &line["verdict"]), (0, &"conforms".into()), "{device}: {ran:?}");
        let state = &line["outcomes"][0]["state"];
        for (texel, value) in [
            ("counts[0,0]", 6),
            ("counts[3,2]", 5),
            ("table[63]", 4_294_967_108_u64),
            ("row[0]", 63),
            ("row[62]", 1),
        ] {
            assert_eq!(state[texel], value, "{device}: {texel} of {state}");
        }
        // A fault of the simulated GPU: one of two atomic updates is lost.
        if device == "sim" {
            let faulty = [&["--grid", "2", "--fault", "rmw-not-atomic"], &images[..]].concat();
            let (ran, line) = run(device, &source("texel-counts"), &faulty);
            assert_eq!((ran.code, &line["verdict"]), (1, &"violates".into()), "{ran:?}");
        }
    }
}

/// Every 32-bit format is read and written with the same bits as by the drivers.
///
/// Exceptions: the drivers convert 8-bit components by a multiplication instead of a division, and lavapipe
/// rounds half-way values toward zero in writes.
#[test]
fn texels_of_users_are_read_and_written_as_by_drivers() {
    if !installed("glslangValidator") {
        return;
    }
    let formats = [
        ("r32f", "vec4"),
        ("rgba8", "vec4"),
        ("rgba8_snorm", "vec4"),
        ("rg16", "vec4"),
        ("rg16_snorm", "vec4"),
        ("rg16f", "vec4"),
        ("rgb10_a2", "vec4"),
        ("r32ui", "uvec4"),
        ("rgba8ui", "uvec4"),
        ("rg16ui", "uvec4"),
        ("r32i", "ivec4"),
        ("rgba8i", "ivec4"),
        ("rg16i", "ivec4"),
    ];
    // A soak takes every format, other runs one in two.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 2 };
    for (format, vector) in formats.into_iter().step_by(share) {
        let (image, bits, fill) = match vector {
            "vec4" => ("image2D", "floatBitsToUint", "floats"),
            "uvec4" => ("uimage2D", "", "iota"),
            _ => ("iimage2D", "uvec4", "iota"),
        };
        let flags = [
            format!("-DFORMAT={format}"),
            format!("-DVECTOR={vector}"),
            format!("-DIMAGE={image}"),
            format!("-DBITS={bits}"),
            "--grid=1".to_owned(),
            format!("--image=0.0=8x2,fill={fill}"),
            "--image=0.1=8x2".to_owned(),
            format!("--buffer=0.2={fill}:128"),
            "--instances".to_owned(),
            "120".to_owned(),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let left: Vec<_> = devices()
            .into_iter()
            .map(|device| {
                let (ran, line) = run(device, &source("texels"), &flags);
                let exact = vector != "vec4" || format == "r32f";
                let expected = if exact { (0, "conforms") } else { (3, "inconclusive") };
                assert_eq!((ran.code, line["verdict"].as_str().unwrap()), expected, "{format}: {ran:?}");
                let contents = line["shader"]["contents"].as_array().unwrap();
                assert_eq!(contents.len(), 1, "{device}, {format}: {line}");
                (device, contents[0]["differs"].as_object().unwrap().clone())
            })
            .collect();
        let [(_, sim), drivers @ ..] = &left[..] else { panic!("no simulated GPU") };
        assert!(sim.keys().any(|name| name.starts_with("to[")), "{format}: {sim:?}");
        assert!(sim.keys().any(|name| name.starts_with("Read.read[")), "{format}: {sim:?}");
        for (device, driver) in drivers {
            assert!(sim.keys().eq(driver.keys()), "{device}, {format}");
            for (name, own) in sim {
                let (simulated, other) = (own.as_u64().unwrap(), driver[name].as_u64().unwrap());
                let near = match (format, name.starts_with("to[")) {
                    ("rgba8" | "rgba8_snorm", false) => simulated.abs_diff(other) <= 1,
                    ("rg16f", true) => (0..2).all(|half| {
                        (simulated >> (16 * half) & 0xffff).abs_diff(other >> (16 * half) & 0xffff) <= 1
                    }),
                    _ => simulated == other,
                };
                assert!(near, "{device}, {format}: {name} is {simulated}, there {other}");
            }
        }
    }
}

#[test]
fn missing_features_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let edit = |name: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(shader(name)).unwrap();
        assert!(text.contains(from), "{text}");
        let path = folder.path().join(format!("{name}-edited.spvasm"));
        std::fs::write(&path, text.replace(from, to)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let large = edit("racy", "LocalSize 1 1 1", "LocalSize 4096 1 1");
    let sampled = edit("image", "2D 0 0 0 2 R32ui", "2D 0 0 0 1 R32ui");
    let capable = edit("reduction", "OpCapability Shader", "OpCapability Shader\nOpCapability Float16Buffer");
    let cases = [
        (large.as_str(), "device lacks 4096 invocations in a workgroup (it has 1024)"),
        (&capable, "not available: vk-litmus does not enable the capability Float16Buffer"),
        (
            &sampled,
            "not available: dispatching the sampled, layered, multisampled or three-dimensional image `picture`",
        ),
    ];
    for (file, expected) in cases {
        let (ran, line) = run("sim", file, &[]);
        assert_eq!((ran.code, &line["verdict"]), (3, &"skipped".into()), "{ran:?}");
        assert_eq!(line["detail"], expected, "{line}");
    }
}

#[test]
fn flags_without_a_meaning_for_shaders_are_refused() {
    let cases: [(&[&str], &str); 6] = [
        (&["sb/SB+rlx-rlx"], "litmus tests and shaders in one run (`sb/SB+rlx-rlx`)"),
        (&["--suite", "quick"], "`--suite` with shaders"),
        (&["--cts-name", "*"], "`--cts-name` with shaders"),
        (&["--progress", "fair"], "`--progress` with shaders"),
        (&["--format", "gtest"], "`--format gtest` with shaders"),
        (&["--save-baseline"], "`--save-baseline` with shaders"),
    ];
    for (more, expected) in cases {
        let ran = Ran::run(vk_litmus(["run", &shader("racy"), "--device", "sim"]).args(more));
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(expected) && ran.messages().contains("not available"), "{ran:?}");
    }
    let ran = Ran::run(&mut vk_litmus(["run", "sb/SB+rlx-rlx", "--device", "sim", "--grid", "2"]));
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.messages().contains("need a shader file"), "{ran:?}");
}

/// A run of a shader can be resumed, and every report format has the shader.
#[test]
fn runs_of_shaders_are_recorded_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let arguments = [
        "--device",
        "sim",
        "--seed",
        "7",
        "--instances",
        "100",
        "--grid",
        "2",
        "--out",
        out.to_str().unwrap(),
    ];
    let first = Ran::run(vk_litmus(["run", &shader("message"), &shader("racy")]).args(arguments));
    assert_eq!(first.code, 1, "{first:?}");
    assert!(first.stdout.contains("message:main on sim: "), "{first:?}");
    assert!(Path::new(&out).join("run.jsonl").is_file());
    let resumed =
        Ran::run(vk_litmus(["run", &shader("message"), &shader("racy"), "--resume"]).args(arguments));
    assert_eq!((resumed.code, &resumed.stdout), (1, &first.stdout), "{resumed:?}");
    let page = folder.path().join("page.html");
    let report = Ran::run(&mut vk_litmus([
        "report",
        out.to_str().unwrap(),
        "--format",
        "html",
        "--out",
        page.to_str().unwrap(),
    ]));
    assert_eq!(report.code, 0, "{report:?}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("message:main"));
}

#[test]
fn literals_of_a_switch_are_as_wide_as_its_selector() {
    for device in devices() {
        let expected = "data.at[0] == 10 /\\ data.at[1] == 20 /\\ data.at[2] == 30 /\\ data.at[3] == 30";
        let (ran, line) = run(device, &shader("switch-64"), &["--assert", expected]);
        if device == "swiftshader" {
            assert_eq!((ran.code, &line["reason"]), (3, &"device lacks shaderInt64".into()), "{ran:?}");
            continue;
        }
        assert_eq!((ran.code, &line["verdict"]), (0, &"conforms".into()), "{device}: {ran:?}");
        assert_eq!(line["shader"]["claim"]["broken"], 0, "{device}: {line}");
    }
}

/// A module with one capability may use an atomic operation in any memory; each Vulkan feature is for one
/// memory.
#[test]
fn an_atomic_operation_needs_the_feature_of_its_memory() {
    if !installed("glslangValidator") || !software_drivers().contains(&"lavapipe") {
        return;
    }
    let file = format!("{}/tests/all/shaders/dispatch/atomics-64-shared.comp", env!("CARGO_MANIFEST_DIR"));
    for (mask, verdict) in [("shaderBufferInt64Atomics", "conforms"), ("shaderSharedInt64Atomics", "skipped")]
    {
        let folder = tempfile::tempdir().unwrap();
        let mut command =
            vk_litmus(["run", &file, "--device", "lavapipe", "--seed", "1", "--format", "json"]);
        let ran = Ran::run(
            command.args(["--instances", DISPATCHES]).env("VK_LITMUS_MASK", mask).current_dir(folder.path()),
        );
        let line = &ran.json_lines()[0];
        assert_eq!(line["verdict"], verdict, "{mask}: {ran:?}");
        if verdict == "skipped" {
            assert_eq!(line["reason"], format!("device lacks {mask}"), "{line}");
        }
    }
}
