//! Recordings of programs: the inputs of dispatches, and the order between commands.
//!
//! A recorded case equals the input of the run. Dynamic offsets, an indirect dispatch and an address in push
//! constants, which the runner does not use, are recorded from other programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Layer, Ran, installed, schemas, software_drivers, vk_litmus};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders/record").join(name)
}

/// Records a command line, and returns the answers that `record --format json` prints.
fn record(out: &Path, options: &[&str], program: &mut Command) -> Ran {
    let mut command = vk_litmus(["record", "--format", "json", "--out"]);
    command.arg(out).args(options).arg("--").arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    Ran::run(&mut command)
}

/// Returns the cases of a recording, with their text.
fn cases(recording: &Path) -> Vec<(PathBuf, String)> {
    let text = std::fs::read_to_string(recording.join("recording.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    for schema in schemas("recording.schema.json", "recording.schema.json").iter().take(1) {
        let schema = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
        jsonschema::validate(&schema, &record).unwrap();
    }
    let kinds = record["kinds"].as_array().unwrap().iter();
    let files = kinds
        .flat_map(|kind| kind["cases"].as_array().unwrap())
        .map(|file| recording.join(file.as_str().unwrap()));
    files.map(|file| (file.clone(), std::fs::read_to_string(file).unwrap())).collect()
}

/// Returns the verdict and the findings of `race` for a case, without positions.
fn race_answer(module: &Path, case: &Path, more: &[&str]) -> serde_json::Value {
    let mut command = vk_litmus(["race", "--format", "json"]);
    let ran = Ran::run(command.args(more).arg(module).arg("--case").arg(case));
    let line = ran.json_lines().pop().unwrap();
    let findings = line["findings"].as_array().unwrap();
    let messages: Vec<&str> = findings.iter().map(|finding| finding["message"].as_str().unwrap()).collect();
    serde_json::json!([line["verdict"], line["grid"], messages])
}

/// Returns the words of the file that a table of a case names.
fn words(case: &(PathBuf, String), table: &str) -> Vec<u32> {
    let rest = case.1.split_once(&format!("[{table}]\n")).unwrap().1;
    let name = rest.lines().find_map(|line| line.strip_prefix("file = ")).unwrap().trim_matches('"');
    let path = case.0.with_file_name(name);
    let bytes = campaign::recorded_contents::unpack_contents(&path, std::fs::read(&path).unwrap()).unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn compile(folder: &Path, name: &str, mode: &str) -> PathBuf {
    let module = folder.join(format!("{name}{mode}.spv"));
    compile_to(&module, &format!("{name}.comp"), mode);
    module
}

fn compile_to(module: &Path, source: &str, mode: &str) {
    let mut compiler = Command::new("glslangValidator");
    let options = ["-V", "--target-env", "vulkan1.2", "-g", &format!("-DMODE={mode}"), "-o"];
    let ran = Ran::run(compiler.args(options).arg(module).arg(data(source)));
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// Compiles a host program; `None` if the Vulkan headers or a compiler are missing.
fn build_host(folder: &Path, name: &str) -> Option<(PathBuf, PathBuf)> {
    if !installed("glslangValidator") {
        return None;
    }
    let (module, host) = (compile(folder, name, "0"), folder.join("host"));
    if data(&format!("{name}.vert")).exists() {
        let fragments = ["0", "1", "2"].map(|mode| (format!("frag{mode}"), "frag", mode));
        let vertices = ["0", "1", "2"].map(|mode| (format!("vert{mode}"), "vert", mode));
        for (suffix, source, mode) in fragments.into_iter().chain(vertices) {
            let file = folder.join(format!("{name}0.spv.{suffix}"));
            compile_to(&file, &format!("{name}.{source}"), mode);
        }
    }
    let modes = match name {
        "sequences" => 1..6,
        "descriptors" => 1..10,
        _ => 0..0,
    };
    for mode in modes {
        compile(folder, name, &mode.to_string());
    }
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c11", "-O1", "-Wall", "-o"])
        .arg(&host)
        .arg(data(&format!("{name}.c")))
        .arg("-lvulkan");
    let built = Ran::run(&mut compiler);
    if built.messages().contains("vulkan.h: No such file") {
        println!("1 skipped: libvulkan-dev is not installed");
        return None;
    }
    assert_eq!(built.code, 0, "{built:?}");
    Some((module, host))
}

/// Specialization and push constants, buffers and an image: the recorded case of a `run` equals its input.
#[test]
fn a_recorded_case_equals_the_dispatched_one() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (kernel, case) = (data("given.comp"), data("given.toml"));
    for driver in software_drivers() {
        let out = folder.path().join(driver);
        let mut command = vk_litmus(["run", "--device", driver, "--instances", "2", "--seed", "1"]);
        command
            .arg(&kernel)
            .arg("--case")
            .arg(&case)
            .arg("--out")
            .arg(folder.path().join(format!("{driver}-run")));
        let ran = record(&out, &["--no-judge", "--keep", "9"], &mut command);
        assert_eq!(ran.code, 0, "{driver}: {ran:?}");
        let all = cases(&out);
        let found =
            all.iter().find(|(_, case)| case.contains("[image.\"1.1\"]")).expect("a dispatch of the shader");
        let text = &found.1;
        let subgroups = text.lines().find_map(|line| line.strip_prefix("subgroup_size = ")).unwrap();
        let given = race_answer(&kernel, &case, &["--subgroup-size", subgroups]);
        assert_eq!(given[0], "racy");
        assert_eq!(
            race_answer(&found.0.with_file_name("module.spv"), &found.0, &[]),
            given,
            "{driver}: {text}"
        );
        assert!(text.contains("grid = [2, 1, 1]\n") && !text.contains('#'), "{driver}: {text}");
        // Half, 1, 2 and 3 are unchanged; texels are rounded to their 8-bit format.
        assert_eq!(words(found, "buffer.\"0.2\""), [0.5_f32, 1.0, 2.0, 3.0].map(f32::to_bits), "{driver}");
        let numbers = entry_point::inputs::fill_bytes("random", 256).unwrap();
        let recorded: Vec<u8> =
            words(found, "buffer.\"0.0\"").iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(recorded, numbers, "{driver}");
        let floats = entry_point::inputs::fill_bytes("floats", 16 * 2 * 16).unwrap();
        let texels = floats.chunks_exact(4).map(|word| {
            let value = f32::from_le_bytes(word.try_into().unwrap()).clamp(0.0, 1.0);
            ((value * 255.0).round() / 255.0).to_bits()
        });
        assert_eq!(words(found, "image.\"1.1\""), texels.collect::<Vec<u32>>(), "{driver}");
    }
}

/// A module without debug information has no lines: its places are instructions.
#[test]
fn places_without_lines_are_instructions() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("given.spv");
    let mut compiler = Command::new("glslangValidator");
    compiler.args(["-V", "--target-env", "vulkan1.2", "-g0", "-o"]).arg(&module).arg(data("given.comp"));
    let compiled = Ran::run(&mut compiler);
    assert_eq!(compiled.code, 0, "{compiled:?}");
    let mut command = vk_litmus(["race", "--subgroup-size", "8", "--case"]);
    let ran = Ran::run(command.arg(data("given.toml")).arg(&module));
    assert_eq!(ran.code, 1, "{ran:?}");
    let places: Vec<&str> =
        ran.stdout.lines().filter(|line| line.trim_start().starts_with("write ")).collect();
    let is_instruction = |line: &&str| line.contains(".spv, word ") && line.contains(": Op");
    assert!(!places.is_empty() && places.iter().all(is_instruction), "{ran:?}");
}

#[test]
fn bindings_by_offset_and_by_address_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let Some((module, host)) = build_host(folder.path(), "host") else { return };
    let out = folder.path().join("recording");
    let ran = record(&out, &[], Command::new(&host).arg(&module).env("NODEVICE_SELECT", "1"));
    // The program reads in one submission what it wrote in the one before, without a barrier.
    assert_eq!(ran.code, 0, "{ran:?}");
    let all = cases(&out);
    let [case] = &all[..] else { panic!("{all:?}") };
    assert!(case.1.contains("grid = [3, 1, 1]\n") && !case.1.contains('#'), "{}", case.1);
    assert!(case.1.contains("[address.\"push8\"]\nat = \"push@8\"\n"), "{}", case.1);
    // 128 bytes at 256 + 256, 128 at 256 + 1024, and from 3072 to the end.
    assert_eq!(words(case, "buffer.\"0.0\""), (128..160).collect::<Vec<u32>>());
    assert_eq!(words(case, "buffer.\"1.0\""), (320..352).collect::<Vec<u32>>());
    assert_eq!(words(case, "address.\"push8\""), (768..1024).collect::<Vec<u32>>());
    assert_eq!(ran.json_lines()[0]["verdict"], "clean");
}

/// `descriptors.tsv` has the kind of a descriptor, what is behind it, the mode of the shader, and the verdict that these decide.
#[test]
fn descriptors_of_each_kind_are_recorded_or_named() {
    judge_programs("descriptors", &[("descriptor-buffer", "descriptor_buffers")]);
}

/// `order.tsv` has two commands, the order between them, and the hazards.
#[test]
fn missing_orders_between_commands_are_found() {
    judge_programs("order", &[("queues", "families")]);
}

/// `sequences.tsv` has programs with a fault and without it, and the hazards.
#[test]
fn faults_between_commands_of_whole_programs_are_found() {
    judge_programs("sequences", &[("queues", "families"), ("incoherent", "memory")]);
}

/// Returns the verdict of the first shader that is not clean, the hazards, and that something is not judged.
fn summarize(lines: &[serde_json::Value]) -> String {
    let verdicts =
        lines.iter().filter_map(|line| line["verdict"].as_str()).filter(|verdict| *verdict != "clean");
    let hazards = lines.iter().filter(|line| line["schema"] == "vk-litmus/hazard/1").map(|line| {
        let missing = line["missing"].as_str().unwrap();
        let parts = [
            "execution",
            "source access",
            "destination access",
            "ownership",
            "flush",
            "wrote",
            "unmapped",
            "did not invalidate",
            "a transition",
            "the contents",
        ];
        let missing = parts.into_iter().find(|word| missing.contains(word));
        let possible = match (&line["is_information"], &line["is_possible"]) {
            (serde_json::Value::Bool(true), _) => "information-",
            (_, serde_json::Value::Bool(true)) => "possible-",
            _ => "",
        };
        format!("{possible}{}:{}", line["kind"].as_str().unwrap(), missing.unwrap_or_default())
    });
    let unjudged = lines.last().unwrap()["unjudged"].as_array().unwrap();
    let mut found: Vec<String> = verdicts.take(1).map(str::to_owned).chain(hazards).collect();
    found.extend(unjudged.iter().map(|_| "unjudged".to_owned()));
    found.join(" ")
}

/// Compares the rows of a table with the answers about the host program of the same name. Programs with a word need its layer.
fn judge_programs(name: &str, layers: &[(&'static str, &'static str)]) {
    const UNSUPPORTED: i32 = 77;
    let folder = tempfile::tempdir().unwrap();
    let Some((module, host)) = build_host(folder.path(), name) else { return };
    let table = std::fs::read_to_string(data(&format!("{name}.tsv"))).unwrap();
    let build =
        |(word, layer): &(&'static str, &'static str)| Some((*word, *layer, Layer::build_layer(layer)?));
    let Some(layers) = layers.iter().map(build).collect::<Option<Vec<_>>>() else { return };
    let drivers = software_drivers();
    let fixes = std::fs::read_to_string(data("fixes.tsv")).unwrap();
    let fixes = fixes.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let fixes: Vec<_> = fixes.filter(|cells| name == "sequences" && cells.len() == 3).collect();
    let mut code = std::collections::BTreeSet::new();
    for (index, row) in table.lines().filter(|line| !line.starts_with('#')).enumerate() {
        let cells: Vec<&str> = row.split('\t').collect();
        let [arguments @ .., expected] = &cells[..] else { panic!("{row}") };
        let mut judged = 0;
        for driver in &drivers {
            let mut command = driver_program(&module, &host, driver, arguments);
            let is_needed = |(word, ..): &&(&str, &str, Layer)| {
                arguments.iter().any(|argument| argument.starts_with(word))
            };
            if let Some((_, layer, installed)) = layers.iter().find(is_needed) {
                command.env("VK_LAYER_PATH", installed.folder());
                command.env("VK_INSTANCE_LAYERS", format!("VK_LAYER_LITMUS_{layer}"));
            }
            // The layer changes nothing that the program prints, if its result has an order.
            let alone = Ran::run(&mut command);
            if alone.code == UNSUPPORTED {
                continue;
            }
            judged += 1;
            let ran = record(&folder.path().join(format!("{driver}-{index}")), &["-q"], &mut command);
            assert_eq!(summarize(&ran.json_lines()), *expected, "{driver}: {row}: {ran:?}");
            let found: Vec<[String; 2]> = ran.json_lines().iter().filter_map(place_and_code).collect();
            for fix in fixes.iter().filter(|fix| arguments == [fix[0], "wrong"]) {
                let is_there = |[place, code]: &[String; 2]| place.contains(fix[1]) && code.contains(fix[2]);
                assert!(found.iter().any(is_there), "{driver}: {fix:?}: {found:?}");
            }
            code.extend(found.into_iter().map(|[_, code]| code).filter(|code| code.ends_with(';')));
            let hazards: Vec<&str> = expected.split(' ').filter(|word| word.contains(':')).collect();
            let has_all = |kind| !hazards.is_empty() && hazards.iter().all(|hazard| hazard.starts_with(kind));
            let code = match () {
                () if has_all("information-") => 0,
                () if expected.contains("unjudged") || has_all("possible-") => 3,
                () => i32::from(!expected.is_empty()),
            };
            assert_eq!(ran.code, code, "{driver}: {row}: {ran:?}");
            let is_equal = ran.stderr.contains(alone.stdout.trim_end());
            assert!(!expected.is_empty() || is_equal, "{driver}: {row}: {alone:?} {ran:?}");
        }
        assert!(judged > 0 || drivers.len() < 2, "{row}: no driver has this kind");
    }
    compile_fixes(folder.path(), &code);
}

/// Returns the place of the fix of a hazard, and its code.
fn place_and_code(line: &serde_json::Value) -> Option<[String; 2]> {
    Some([line["place"].as_str()?.to_owned(), line["fix"].as_str()?.to_owned()])
}

/// Compiles statements that name a command buffer and buffers, and change stages and accesses of a barrier.
fn compile_fixes(folder: &Path, fixes: &std::collections::BTreeSet<String>) {
    let mut text = "#include <vulkan/vulkan.h>\n".to_owned();
    for (number, code) in fixes.iter().enumerate() {
        let mut parameters = String::new();
        for (member, class) in [(".buffer = ", "VkBuffer"), (".image = ", "VkImage")] {
            let names = code.split(member).skip(1).filter_map(|rest| rest.split(',').next());
            let names: std::collections::BTreeSet<&str> = names.collect();
            parameters.extend(names.iter().map(|name| format!(", {class} {name}")));
        }
        let barrier = match (code.contains("barrier."), code.contains("STAGE_2")) {
            (true, true) => ", VkImageMemoryBarrier2 barrier",
            (true, false) => ", VkPipelineStageFlags srcStageMask, VkImageMemoryBarrier barrier",
            (false, _) => "",
        };
        text += &format!("void fix{number}(VkCommandBuffer commands{barrier}{parameters}) {{ {code} }}\n");
    }
    let file = folder.join("fixes.c");
    std::fs::write(&file, &text).unwrap();
    let ran = Ran::run(Command::new("cc").args(["-std=c11", "-fsyntax-only", "-Werror"]).arg(&file));
    assert_eq!(ran.code, 0, "{text}: {ran:?}");
}

/// Without inputs, a dispatch may access all that its descriptors name; a journal without an end is no whole answer.
#[test]
fn what_is_not_judged_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let Some((module, host)) = build_host(folder.path(), "order") else { return };
    let Some(driver) = software_drivers().first().copied() else { return };
    for (order, options, possible) in [
        ("800:40:800:20", &["-q", "--keep", "0"][..], 0),
        ("none", &["-q", "--keep", "0"], 1),
        ("800:40:800:20", &["-q", "--no-judge"], 0),
    ] {
        let out = folder.path().join(format!("{order}-{}", options.len() + options[1].len()));
        let mut program = driver_program(&module, &host, driver, &["ab", order, "bc"]);
        let mut ran = record(&out, options, &mut program);
        let is_cut = options.contains(&"--no-judge");
        if is_cut {
            assert_eq!(ran.code, 0, "{ran:?}");
            let process = std::fs::read_dir(out.join("processes")).unwrap().next().unwrap().unwrap();
            let mut journal =
                std::fs::OpenOptions::new().append(true).open(process.path().join("journal.jsonl")).unwrap();
            std::io::Write::write_all(&mut journal, b"{\"event\":").unwrap();
            ran = Ran::run(vk_litmus(["race", "--format", "json", "-q"]).arg(&out));
        }
        assert_eq!(ran.code, 3, "{order}: {ran:?}");
        let lines = ran.json_lines();
        let judgement = lines.last().unwrap();
        assert_eq!(judgement["possible_hazards"], possible, "{order}: {ran:?}");
        assert_eq!(judgement["hazards"], 0, "{order}: {ran:?}");
        assert_eq!(judgement["judged_dispatches"], if is_cut { 2 } else { 0 }, "{order}: {ran:?}");
        let counts = judgement["unjudged"].as_array().unwrap().iter().map(|entry| &entry["count"]);
        assert_eq!(counts.collect::<Vec<_>>(), [if is_cut { 1 } else { 2 }], "{order}: {ran:?}");
    }
}

/// A command line that executes a host program with one driver, by its manifest where distributions install it.
fn driver_program(module: &Path, host: &Path, driver: &str, arguments: &[&str]) -> Command {
    let manifests = match driver {
        "lavapipe" => "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json".to_owned(),
        _ => std::env::var("VK_LITMUS_SWIFTSHADER_ICD")
            .unwrap_or_else(|_| "/usr/lib/chromium/vk_swiftshader_icd.json".to_owned()),
    };
    let mut command = Command::new(host);
    command.arg(module).args(arguments).env("NODEVICE_SELECT", "1");
    command.env("VK_DRIVER_FILES", &manifests).env("VK_ICD_FILENAMES", manifests);
    command
}

/// A file that is not as it was recorded, or from another version, is an error that names it.
#[test]
fn damaged_recordings_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let Some((module, host)) = build_host(folder.path(), "order") else { return };
    let Some(driver) = software_drivers().first().copied() else { return };
    let out = folder.path().join("recording");
    let mut program = driver_program(&module, &host, driver, &["ab", "800:40:800:20", "bc"]);
    let ran = record(&out, &["-q", "--total-time", "1ms"], &mut program);
    assert_eq!(ran.code, 3, "{ran:?}");
    let lines = ran.json_lines();
    let why = lines.last().unwrap()["unjudged"][0]["why"].as_str().unwrap();
    assert!(why.contains("--total-time"), "{why}");
    let case = cases(&out).remove(0).0;
    let first_in = |folder: &Path, extension: &str| {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|found| found == extension)).min().unwrap()
    };
    let kind = case.parent().unwrap();
    let process = std::fs::read_dir(out.join("processes")).unwrap().next().unwrap().unwrap().path();
    for (file, from, to, words) in [
        (first_in(kind, "z"), "", "", &["damaged"][..]),
        (kind.join("module.spv"), "main", "niam", &["damaged"]),
        (case.clone(), "grid = [", "grid = [1", &["damaged"]),
        (out.join("recording.json"), "recording/1", "recording/2", &["recording/1", "recording/2"]),
        (process.join("journal.jsonl"), "\"layer\":4", "\"layer\":99", &["version 4", "version 99"]),
    ] {
        let whole = std::fs::read(&file).unwrap();
        let place = whole.windows(from.len().max(1)).position(|part| part == from.as_bytes()).unwrap_or(8);
        let damaged = [&whole[..place], to.as_bytes(), &whole[place + from.len()..][..]].concat();
        let damaged = if from.is_empty() { &whole[..place] } else { &damaged };
        std::fs::write(&file, damaged).unwrap();
        let ran = Ran::run(vk_litmus(["race", "-q"]).arg(&out));
        assert_eq!(ran.code, 2, "{}: {ran:?}", file.display());
        let name = file.file_name().unwrap().to_str().unwrap();
        let is_named = ran.stderr.contains(name) && words.iter().all(|word| ran.stderr.contains(word));
        assert!(is_named, "{}: {ran:?}", file.display());
        std::fs::write(&file, whole).unwrap();
    }
    assert_eq!(Ran::run(vk_litmus(["race", "-q"]).arg(&out)).code, 0);
}

#[test]
fn a_recording_has_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let Some((module, host)) = build_host(folder.path(), "order") else { return };
    let Some(driver) = software_drivers().first().copied() else { return };
    let out = folder.path().join("recording");
    let ran = record(&out, &["-q"], &mut driver_program(&module, &host, driver, &["ab", "none", "bc"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    for (line, name) in ran.json_lines().iter().rev().zip(["judgement", "hazard"]) {
        for schema in schemas(&format!("{name}.schema.json"), "").iter().take(1) {
            let schema = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
            jsonschema::validate(&schema, line).unwrap();
        }
    }
    // The module of a kind is linted once.
    let linted = Ran::run(vk_litmus(["lint", "--format", "json"]).arg(&out));
    assert_eq!((linted.code, linted.json_lines().len()), (0, 1), "{linted:?}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    let judged = |options: &[&str]| {
        let ran = Ran::run(vk_litmus(["race", "-q"]).arg(&out).args(options));
        (ran.code, ran.stdout)
    };
    for (format, words) in [
        ("text", ["hazard: read after write", "first dispatch of"]),
        ("sarif", ["\"ruleId\": \"hazard\"", "recording.json"]),
        ("junit", ["failures=\"1\"", "<testcase name=\"hazard: read after write"]),
        ("html", ["href=\"#hazard-1\"", "id=\"hazard-1\""]),
    ] {
        let (code, text) = judged(&["--format", format]);
        assert_eq!(code, 1, "{format}");
        let is_whole = |text: &str| words.iter().all(|word| text.contains(word));
        assert!(is_whole(&text) && (format != "html" || is_whole(&page)), "{format}: {text}");
    }
    for (kinds, code) in [("hazard", 1), ("finding,program", 0), ("unjudged,possible-hazard", 0)] {
        let (ended, text) = judged(&["--format", "junit", "--fail-on", kinds]);
        assert_eq!(ended, code, "{kinds}");
        assert_eq!(text.contains("<skipped"), code == 0, "{kinds}: {text}");
    }
}

/// A barrier is redundant if the commands around it access different bytes. A later process adds its cases to a kind.
#[test]
fn redundant_barriers_and_several_processes() {
    let folder = tempfile::tempdir().unwrap();
    let Some((module, host)) = build_host(folder.path(), "order") else { return };
    let Some(driver) = software_drivers().first().copied() else { return };
    // A dependency of a render pass orders layout transitions.
    for (first, order, second, dispatches, checked, redundant) in [
        ("ab", "800:40:800:20", "bc", 4, 2, 0),
        ("ab", "800:40:800:20", "ac", 4, 2, 2),
        ("pass", "400:100:400:100p", "bc", 2, 0, 0),
    ] {
        let program = driver_program(&module, &host, driver, &[first, order, second]);
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$@\" && \"$@\"", "sh"]).arg(program.get_program()).args(program.get_args());
        shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = record(&folder.path().join(first).join(second), &["-q", "--keep", "1"], &mut shell);
        assert_eq!(ran.code, 0, "{ran:?}");
        let lines = ran.json_lines();
        let judgement = lines.last().unwrap();
        assert_eq!(judgement["judged_dispatches"], dispatches, "{judgement}");
        assert_eq!(judgement["checked_barriers"], checked, "{judgement}");
        assert_eq!(judgement["redundant_barriers"].as_array().unwrap().len(), redundant, "{judgement}");
    }
}

/// `faults.comp` has fifteen pairs of a right shader and one with a fault.
#[test]
fn races_inside_dispatches_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let Some((_, host)) = build_host(folder.path(), "order") else { return };
    let module = compile(folder.path(), "faults", "0");
    for driver in software_drivers() {
        let mut program = driver_program(&module, &host, driver, &["faults"]);
        let ran = record(&folder.path().join(driver), &["-q"], &mut program);
        let lines = ran.json_lines();
        let verdicts: Vec<&str> = lines.iter().filter_map(|line| line["verdict"].as_str()).collect();
        assert_eq!(verdicts, ["clean", "racy"].repeat(15), "{driver}: {ran:?}");
        let judgement = lines.last().unwrap();
        assert_eq!(judgement["hazards"], 0, "{driver}: {judgement}");
        assert_eq!(judgement["unjudged"], serde_json::json!([]), "{driver}");
    }
}

/// An order that only naga lost is not reported as a defect of the program.
#[test]
fn modules_of_naga_have_the_answer_of_wgsl() {
    if !installed("naga") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for driver in software_drivers() {
        let mut command = vk_litmus(["run", "--device", driver, "--instances", "2", "--grid", "1", "--out"]);
        command.arg(folder.path().join(format!("{driver}-run")));
        command.arg(data("../kinds/storage-exchange.wgsl"));
        let ran = record(&folder.path().join(driver), &["-q"], &mut command);
        let lines = ran.json_lines();
        let answer = lines.iter().find(|line| line["language"] == "WGSL").unwrap();
        let parts = ["verdict", "language_verdict", "module_verdict", "compiler"].map(|name| &answer[name]);
        assert_eq!(parts, ["clean", "clean", "racy", "naga"], "{driver}: {answer}");
        // A process without commands is not judged, which is 3.
        assert_ne!(ran.code, 1, "{driver}: {ran:?}");
    }
}

#[test]
fn a_program_without_vulkan_has_no_recording() {
    let folder = tempfile::tempdir().unwrap();
    // A 32-bit program that ends: its header, a segment, and the system call `exit`.
    let small = folder.path().join("small");
    let header = "7f454c46010101000000000000000000020003000100000054800408340000000000000000000000340020000100000000000000";
    let segment = "010000000000000000800408008004085b0000005b0000000500000000100000";
    let code = "31c04031dbcd80";
    let text = [header, segment, code].concat();
    let bytes = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap());
    std::fs::write(&small, bytes.collect::<Vec<u8>>()).unwrap();
    std::fs::set_permissions(&small, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let small = small.to_str().unwrap();
    for (program, why) in
        [("true", "created no Vulkan instance"), ("false", "false failed ("), (small, "is a 32-bit program")]
    {
        // A kernel may be without support of 32-bit programs.
        if program == small && Command::new(small).status().is_err() {
            continue;
        }
        let out = folder.path().join("out");
        let ran = record(&out, &[], &mut Command::new(program));
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.messages().contains(why), "{ran:?}");
        assert!(!out.exists(), "{ran:?}");
    }
}
