//! Every instruction that compilers emit for compute shaders, a row each in `shaders/instructions.tsv`: `check` and `race` take it, and
//! the simulated GPU leaves, bit for bit, what lavapipe leaves. Where Vulkan leaves results open within bounds, a row compares within
//! them and shows whether that holds.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Ran, installed, software_drivers, vk_litmus};

/// Contents of the buffers before.
const INPUTS: [&str; 5] =
    ["0.0=floats:1024", "0.1=random:1024", "0.2=zeros:1024", "0.3=random:64", "0.4=floats:1024"];

const NUMBERS: &str = "
    i = gl_GlobalInvocationID.x, at = 0;
    uvec4 u = words[i], v = words[i + 16];
    ivec4 s = ivec4(u), t = ivec4(v);
    uint w = words[i + 32].x, x = words[i + 32].y;
    vec4 a = vec4(s >> 12) / 64, b = vec4(t >> 14) / 32, c = vec4((s ^ t) >> 16) / 8, unit = vec4(s >> 16) / 32768;
    bvec4 k = lessThan(u, v), l = lessThan(u.yzwx, v);
";

/// What comes before a shader, functions, and numbers of its own, for rows of a kind.
fn kind(of: &str) -> (String, &'static str, &'static str) {
    let extensions = |names: &[&str]| {
        names.iter().map(|name| format!("#extension GL_{name} : enable\n")).collect::<String>()
    };
    match of {
        "wide" => (
            extensions(&["EXT_shader_explicit_arithmetic_types_int64"]),
            "void put(double value) { put(unpackDouble2x32(value)); }
void put(dvec2 value) { put(uvec4(unpackDouble2x32(value.x), unpackDouble2x32(value.y))); }
void put(bvec2 value) { put(uvec2(value)); }
bvec2 near64(dvec2 x, dvec2 y) { return lessThanEqual(abs(x - y), 1e-9 * max(dvec2(1), max(abs(x), abs(y)))); }
",
            "    dvec2 d = dvec2(a.xy) + dvec2(1, 2) / 1024, e = dvec2(b.xy) * 3 + 0.125;
    uint64_t m = pack64(u.xy), n = pack64(v.xy);
",
        ),
        "group" => {
            let names = ["basic", "vote", "ballot", "shuffle", "shuffle_relative", "arithmetic", "quad"];
            let names: Vec<String> = names.iter().map(|name| format!("KHR_shader_subgroup_{name}")).collect();
            (extensions(&names.iter().map(String::as_str).collect::<Vec<_>>()), "", "")
        }
        _ => (String::new(), "", ""),
    }
}

/// The shaders of all rows, by the number of the row and the instruction.
fn written(folder: &Path) -> Vec<(String, PathBuf)> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders");
    let start = fs::read_to_string(own.join("instructions.comp")).unwrap();
    let start = start.strip_prefix("#version 450\n").unwrap();
    let rows = fs::read_to_string(own.join("instructions.tsv")).unwrap();
    let mut all = Vec::new();
    for (number, row) in rows.lines().skip(1).enumerate() {
        let (name, rest) = row.split_once('\t').unwrap();
        let (of, statements) = rest.split_once('\t').unwrap();
        let (extensions, functions, numbers) = kind(of);
        let text = format!(
            "#version 450\n{extensions}{start}{functions}void main() {{{NUMBERS}{numbers}    {statements};\n}}\n"
        );
        let file = folder.join(format!("{number:03}.comp"));
        fs::write(&file, text).unwrap();
        all.push((name.to_owned(), file));
    }
    all
}

/// The lines that a command prints of all shaders, by file.
fn said(words: &[&str], rows: &[(String, PathBuf)], folder: &Path) -> BTreeMap<String, Value> {
    let mut command = vk_litmus(words.iter().copied());
    command.args(["--format", "json"]).current_dir(folder);
    rows.iter().for_each(|(_, file)| _ = command.arg(file));
    for input in INPUTS {
        command.args(["--buffer", input]);
    }
    let ran = Ran::of(&mut command);
    let number = |line: &Value| {
        let name =
            line["file"].as_str().or(line["source"].as_str()).or(line["id"].as_str()).unwrap_or_default();
        let name = name.rsplit('/').next().unwrap();
        name.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    ran.json_lines().into_iter().map(|line| (number(&line), line)).collect()
}

/// What a device left, by hash.
fn left(line: &Value) -> Vec<String> {
    let contents = line["shader"]["contents"].as_array().into_iter().flatten();
    contents.map(|content| content["hash"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_instruction_that_compilers_emit() {
    if !installed("glslangValidator") || !installed("spirv-dis") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rows = written(folder.path());
    let check = said(&["check"], &rows, folder.path());
    let race = said(&["race"], &rows, folder.path());
    let run =
        |device| said(&["run", "--device", device, "--instances", "1", "--seed", "1"], &rows, folder.path());
    let sim = run("sim");
    let lavapipe = software_drivers().contains(&"lavapipe").then(|| run("lavapipe"));
    let mut table = String::new();
    for (number, (name, file)) in rows.iter().enumerate() {
        let number = format!("{number:03}");
        let module = folder.path().join("module.spv");
        let compiled = Command::new("glslangValidator")
            .args(["-V", "--target-env", "vulkan1.3", "-S", "comp", "-o"])
            .arg(&module)
            .arg(file)
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{name}: {}", String::from_utf8_lossy(&compiled.stdout));
        let text = Command::new("spirv-dis").arg(&module).output().unwrap().stdout;
        let text = String::from_utf8(text).unwrap();
        let instruction = name.split('.').next().unwrap();
        let words = || text.split_whitespace();
        assert!(
            words().any(|word| word.strip_prefix("Op").unwrap_or(word) == instruction),
            "{name} is not in what its row compiles to"
        );
        let word = |lines: &BTreeMap<String, Value>| match lines.get(&number) {
            Some(line) => {
                let why = line["why"].as_str().or(line["reason"].as_str()).unwrap_or_default();
                let verdict = line["race"].as_str().or(line["verdict"].as_str()).unwrap_or("?");
                if matches!(verdict, "free" | "clean") {
                    verdict.to_owned()
                } else {
                    format!("{verdict} {why}")
                }
            }
            None => "refused".to_owned(),
        };
        let device = match sim.get(&number).map(|line| (left(line), line)) {
            Some((own, line)) if own.is_empty() => format!("none: {}", line["reason"]),
            Some((own, _)) => match lavapipe.as_ref().and_then(|lines| lines.get(&number)).map(left) {
                Some(other) if other == own => "as lavapipe".to_owned(),
                Some(other) if other.is_empty() => "lavapipe left none".to_owned(),
                Some(_) => "not as lavapipe".to_owned(),
                None => "as lavapipe".to_owned(),
            },
            None => "refused".to_owned(),
        };
        writeln!(table, "{name}: check {}, race {}, sim {device}", word(&check), word(&race)).unwrap();
    }
    insta::assert_snapshot!(table);
}
