//! Formatting of numbers for reports.

/// Formats a count with thousands separators: `1,234,567`.
pub fn format_count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a probability with three significant digits: in percent from 0.01 %, below as a power of ten.
pub fn format_probability(value: f64) -> String {
    let percent = value * 100.0;
    if percent >= 99.95 {
        "100 %".to_owned()
    } else if percent >= 10.0 {
        format!("{percent:.1} %")
    } else if percent >= 1.0 {
        format!("{percent:.2} %")
    } else if percent >= 0.1 {
        format!("{percent:.3} %")
    } else if percent >= 0.01 {
        format!("{percent:.4} %")
    } else if value > 0.0 {
        format!("{value:.2e}")
    } else {
        "0".to_owned()
    }
}

/// Formats a count with a noun whose plural ends in `s`.
pub fn plural(number: u64, what: &str) -> String {
    format!("{} {what}{}", format_count(number), if number == 1 { "" } else { "s" })
}

/// Formats a duration with about three significant digits.
pub fn format_seconds(value: f64) -> String {
    // An empty sum of floats is -0; adding 0 makes it positive.
    let value = value + 0.0;
    if value >= 100.0 { format!("{value:.0} s") } else { format!("{value:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (value, text) in cases {
            assert_eq!(format_count(value), text);
        }
    }

    #[test]
    fn zero_and_one() {
        assert_eq!(format_seconds(std::iter::empty::<f64>().sum()), "0.0 s");
        assert_eq!(
            (plural(1, "test"), plural(1200, "test")),
            ("1 test".to_owned(), "1,200 tests".to_owned())
        );
    }

    #[test]
    fn probabilities() {
        let cases = [
            (0.0, "0"),
            (1.0, "100 %"),
            (0.309, "30.9 %"),
            (0.0147, "1.47 %"),
            (0.00147, "0.147 %"),
            (0.000147, "0.0147 %"),
            (0.000_001_47, "1.47e-6"),
        ];
        for (value, text) in cases {
            assert_eq!(format_probability(value), text);
        }
    }
}
