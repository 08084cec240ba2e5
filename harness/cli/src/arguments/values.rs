//! Parsers of argument values.

use std::time::Duration;

use litmus::syntax::ForeignSyntax;

/// Parses a size in bytes: a number with the unit K, M or G (powers of 1024).
pub(super) fn parse_memory_size(text: &str) -> Result<u64, String> {
    let expected = || "expected a number with the unit K, M or G, such as 512M or 4G".to_owned();
    let unit = text.chars().next_back().ok_or_else(expected)?;
    let shift = match unit.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => return Err(expected()),
    };
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| expected())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(expected)
}

/// Parses a duration: `15s`, `2m 30s`; a bare number is in seconds.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    let expected = || "expected a duration above zero, such as 500ms, 15s or 2m".to_owned();
    duration.filter(|duration| !duration.is_zero()).ok_or_else(expected)
}

/// Parses a syntax that only `convert` reads.
pub(super) fn parse_foreign_syntax(text: &str) -> Result<ForeignSyntax, String> {
    match text {
        "c11" => Ok(ForeignSyntax::C11),
        "ptx" => Ok(ForeignSyntax::Ptx),
        _ => Err("expected `c11` or `ptx`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_sizes() {
        assert_eq!(parse_memory_size("512M"), Ok(512 << 20));
        assert_eq!(parse_memory_size("4g"), Ok(4 << 30));
        for wrong in ["", "G", "4", "-4G", "0M", "4T", "99999999999999999G", "4\u{20ac}"] {
            assert!(parse_memory_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["0", "0s", "-3", "inf", "NaN", "soon", "1e300"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
