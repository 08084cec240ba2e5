//! Finds the entry points of HLSL, Slang and Unity sources by their attributes.
//!
//! The scan ignores conditional compilation, so it may find functions that the definitions leave out. The
//! compiler decides about these.

use super::macros::expand_declarations;
use super::scan::{directive_argument, has_call, has_word, is_identifier_character, words};
use super::stage::{COMPUTE, SourceStage, stage_of_extension, stage_of_name};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPoint {
    /// The function.
    pub name: String,
    pub stage: &'static SourceStage,
    /// Additional preprocessor definitions, `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
    /// The lanes of a wave that `[WaveSize]` permits, the preferred number first.
    pub wave_sizes: Vec<u32>,
}

impl EntryPoint {
    /// Returns an entry point without attributes.
    pub fn new(name: &str, stage: &'static SourceStage) -> EntryPoint {
        EntryPoint { name: name.to_owned(), stage, defines: Vec::new(), wave_sizes: Vec::new() }
    }
}

/// Returns the functions with `[numthreads]` or `[shader("…")]` in a text without comments.
pub fn find_annotated(text: &str) -> Vec<EntryPoint> {
    let (source, text) = (text, &expand_declarations(text));
    let mut found: Vec<EntryPoint> = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find('[') {
        at += next;
        let (attributes, rest) = leading_attributes(&text[at..]);
        if attributes.is_empty() {
            at += 1;
            continue;
        }
        at = text.len() - rest.len();
        let names_stage = attributes.iter().any(|attribute| attribute.trim_start().starts_with("shader"));
        if !names_stage && !attributes.iter().any(|attribute| has_call(attribute, "numthreads")) {
            continue;
        }
        let Some(open) = rest.find(['(', ';', '{', '}', '=']).filter(|end| rest[*end..].starts_with('('))
        else {
            continue;
        };
        let declared = rest[..open].trim_end();
        // A compute entry point returns nothing; a preprocessor may have removed the one an attribute belongs to.
        if !names_stage && !words(declared).any(|word| word == "void" || word == "func") {
            continue;
        }
        // A generic function is an entry point only if it is instantiated.
        let Some(name) = words(declared).last().filter(|name| declared.ends_with(*name)) else { continue };
        if found.iter().all(|entry| entry.name != name) {
            let stage = stage_of_function(&attributes, function_body(&rest[open..]));
            let wave_sizes = attributes.iter().find_map(|attribute| wave_sizes(attribute, source)?);
            let wave_sizes = wave_sizes.unwrap_or_default();
            found.push(EntryPoint { wave_sizes, ..EntryPoint::new(name, stage) });
        }
    }
    found
}

/// Returns the numbers of lanes that an attribute `WaveSize` permits, the preferred one first, or `None` for impossible
/// ones; compilers do not put them into the module. Macros have their first definition in `text`.
fn wave_sizes(attribute: &str, text: &str) -> Option<Option<Vec<u32>>> {
    let (name, arguments) = attribute.trim().split_once('(')?;
    let arguments = arguments.strip_suffix(')').filter(|_| name.trim().eq_ignore_ascii_case("WaveSize"))?;
    let defined = |name: &str| {
        let value = |line| directive_argument(line, "define")?.strip_prefix(name)?.trim().parse().ok();
        text.lines().find_map(value)
    };
    let number = |argument: &str| argument.parse::<i64>().ok().or_else(|| defined(argument));
    let sizes: Option<Vec<i64>> = arguments.split(',').map(|argument| number(argument.trim())).collect();
    let sizes = sizes?;
    let (least, most, preferred) = match sizes[..] {
        [size] => (size, size, size),
        [least, most] if least < most => (least, most, least),
        [least, most, preferred] if least < most && (least..=most).contains(&preferred) => {
            (least, most, preferred)
        }
        _ => return Some(None),
    };
    let all = [4_u32, 8, 16, 32, 64, 128];
    let mut permitted: Vec<u32> =
        all.into_iter().filter(|size| (least..=most).contains(&i64::from(*size))).collect();
    permitted.sort_by_key(|size| i64::from(*size) != preferred);
    let is_possible = sizes.iter().all(|size| all.iter().any(|known| i64::from(*known) == *size));
    Some(is_possible.then_some(permitted))
}

/// Returns the offset of the first attribute `WaveSize` with impossible sizes in a text without comments.
pub fn impossible_wave_size(text: &str, defines: &str) -> Option<usize> {
    let defined = format!("{defines}{text}");
    let is_impossible = |at: &usize| {
        let attribute = text[*at..].split_once(']').map_or("", |(attribute, _)| attribute);
        wave_sizes(attribute, &defined) == Some(None)
    };
    text.match_indices('[').map(|(at, _)| at + 1).find(is_impossible)
}

/// Returns the contents of the attributes at the start of a text, and the text after them and after the
/// directives between them.
fn leading_attributes(text: &str) -> (Vec<&str>, &str) {
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start();
        if rest.starts_with('#') && !found.is_empty() {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
            continue;
        }
        let Some(end) = closing_bracket(rest, '[', ']') else { return (found, rest) };
        found.push(&rest[1..end]);
        rest = &rest[end + 1..];
    }
}

/// Returns the position of the bracket that closes the one at the start of a text.
fn closing_bracket(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if depth == 0 {
            return None;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// Returns the body of the function whose parameters start a text.
fn function_body(text: &str) -> &str {
    let Some(open) = text.find('{') else { return "" };
    let text = &text[open..];
    closing_bracket(text, '{', '}').map_or(text, |end| &text[..end])
}

/// Returns the stage of a function: named by `shader`, or implied by other attributes or calls.
fn stage_of_function(attributes: &[&str], body: &str) -> &'static SourceStage {
    let named = attributes.iter().find_map(|attribute| {
        let name = attribute.trim().strip_prefix("shader")?.trim();
        stage_of_name(name.strip_prefix('(')?.strip_suffix(')')?.trim().trim_matches('"'))
    });
    let mesh = || {
        let topology = attributes.iter().any(|attribute| has_call(attribute, "outputtopology"));
        topology.then(|| stage_of_extension("mesh")).flatten()
    };
    let task = || has_word(body, "DispatchMesh").then(|| stage_of_extension("task")).flatten();
    named.or_else(mesh).or_else(task).unwrap_or(COMPUTE)
}

/// Returns the kernels of a Unity compute shader: `#pragma kernel NAME DEFINITION…`.
pub fn unity_kernels(text: &str) -> Vec<EntryPoint> {
    let kernel = |line: &str| {
        let mut words = directive_argument(line, "pragma")?.strip_prefix("kernel")?.split_whitespace();
        let kernel = EntryPoint::new(words.next()?, COMPUTE);
        Some(EntryPoint { defines: words.map(str::to_owned).collect(), ..kernel })
    };
    text.lines().filter_map(kernel).collect()
}

/// Returns the functions without attributes that are named like a vertex or pixel shader, or `main`.
pub fn find_conventional(text: &str, file_stage: Option<&'static SourceStage>) -> Vec<EntryPoint> {
    const NAMES: [(&str, &str); 8] = [
        ("VSMain", "vert"),
        ("vs_main", "vert"),
        ("mainVS", "vert"),
        ("VS", "vert"),
        ("PSMain", "frag"),
        ("ps_main", "frag"),
        ("mainPS", "frag"),
        ("PS", "frag"),
    ];
    if has_call(text, "main") {
        let implied =
            || if is_pixel_shader(text) { stage_of_extension("frag") } else { stage_of_extension("vert") };
        return file_stage.or_else(implied).map(|stage| EntryPoint::new("main", stage)).into_iter().collect();
    }
    let found = NAMES.iter().filter(|(name, _)| has_call(text, name));
    found.filter_map(|(name, stage)| Some(EntryPoint::new(name, stage_of_extension(stage)?))).collect()
}

/// Returns true if a text uses the output semantics of pixel shaders.
fn is_pixel_shader(text: &str) -> bool {
    text.split(|c| !is_identifier_character(c))
        .any(|word| word.starts_with("SV_Target") || word.starts_with("SV_TARGET"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_attributes_are_entry_points() {
        let cases = [
            ("[numthreads(8, 8, 1)] void Blur(uint3 id : SV_DispatchThreadID) {}", "Blur:comp"),
            ("[shader(\"compute\")]\n[numthreads(N, 1, 1)]\nvoid scan_up() {}", "scan_up:comp"),
            (
                "[numthreads(1,1,1)] [RootSignature(RS)] void f() {} [numthreads(2,1,1)] void g() {}",
                "f:comp g:comp",
            ),
            ("#if A\n[numthreads(1,1,1)]\n#else\n[numthreads(2,1,1)]\n#endif\nvoid f(int x) {}", "f:comp"),
            ("[outputtopology(\"triangle\")] [numthreads(1,1,1)] void f() {}", "f:mesh"),
            ("[numthreads(1,1,1)] void f() { DispatchMesh(1, 1, 1, p); }", "f:task"),
            ("[shader(\"raygeneration\")] void gen() { a[numthreads] = 1; }", "gen:rgen"),
            ("[shader(\"fragment\")] float4 shade(V v) : SV_Target { return x[0]; }", "shade:frag"),
            ("[unroll] for (int i = 0; i < n[3]; i++) {}", ""),
            ("[numthreads(1,1,1)] void f<T>() {}", ""),
            (
                "[numthreads(1,1,1)]\n#if A\nvoid f() {}\n#endif\nbool inside(float4 p) { return true; }",
                "f:comp",
            ),
            ("[numthreads(64,1,1)] bool inside(float4 p) { return true; }", ""),
            (
                "#define KERNEL(name, x) [numthreads(x,1,1)] void name(\nKERNEL(scan, 64) uint i : A) {}",
                "scan:comp",
            ),
            (
                "#define GROUP(n) [numthreads(n,1,1)]\n#define ENTRY(name, args) void name args\n#define ID uint3 i : SV_GroupID\n\
                 GROUP(64)\nENTRY(scale, (ID)) {}",
                "scale:comp",
            ),
            ("#define SIZE [numthreads(8, 8, 1)]\nSIZE void blur(uint3 i : A) {}", "blur:comp"),
            (
                "#define ID (uint3 id : SV_DispatchThreadID)\n#define GROUP(n) [numthreads(n,1,1)]\n\
                 #define WIDE GROUP(64)\nWIDE void f ID {}",
                "f:comp",
            ),
            (
                "#define K(a, b) \\\n [numthreads(1,1,1)] void a##_##b()\nK(up, x) {} K(down, x) {}",
                "up_x:comp down_x:comp",
            ),
        ];
        for (text, expected) in cases {
            let found = find_annotated(text);
            let found: Vec<String> =
                found.iter().map(|entry| format!("{}:{}", entry.name, entry.stage.extension)).collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn sizes_of_waves_are_powers_of_two_in_order() {
        let cases: [(&str, Option<&[u32]>); 14] = [
            ("WaveSize(32)", Some(&[32])),
            ("wavesize( 4 )", Some(&[4])),
            ("WaveSize(16, 64)", Some(&[16, 32, 64])),
            ("WaveSize(4, 32, 16)", Some(&[16, 4, 8, 32])),
            ("WaveSize(WIDE)", Some(&[64])),
            ("WaveSize(0)", None),
            ("WaveSize(3)", None),
            ("WaveSize(-4)", None),
            ("WaveSize(256)", None),
            ("WaveSize(64, 16)", None),
            ("WaveSize(32, 32)", None),
            ("WaveSize(16, 32, 64)", None),
            ("WaveSize(4, 16, 5)", None),
            ("WaveSize(4, 8, 4, 4)", None),
        ];
        for (attribute, expected) in cases {
            let text = format!("#define WIDE 64\n[{attribute}] [numthreads(64, 1, 1)] void f() {{}}");
            let found = find_annotated(&text).pop().unwrap();
            assert_eq!(found.wave_sizes, expected.unwrap_or_default(), "{attribute}");
            let at = expected.is_none().then(|| text.find(attribute).unwrap());
            assert_eq!(impossible_wave_size(&text, ""), at, "{attribute}");
            assert_eq!(impossible_wave_size("[WaveSize(X)]", "#define X 6\n"), Some(1));
        }
        assert_eq!(
            find_annotated("[WaveSize(X)] [numthreads(64, 1, 1)] void f() {}")[0].wave_sizes,
            [0_u32; 0]
        );
    }

    #[test]
    fn a_kernel_of_unity_has_its_definitions() {
        let found =
            unity_kernels("#pragma kernel Fill\n#pragma kernel Sort SIZE=64 FAST\n#pragma target 5.0\n");
        let found: Vec<String> =
            found.iter().map(|entry| format!("{} {}", entry.name, entry.defines.join(" "))).collect();
        assert_eq!(found, ["Fill ", "Sort SIZE=64 FAST"]);
    }
}
