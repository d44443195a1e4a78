//! What can be typed behind `ebb top`.

use clap::Args;
use model::Nanos;

use crate::arguments::Output;

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct TopOptions {
    /// How often to ask the daemon
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Nanos,
    /// Print one frame and end; rates are those of one interval
    #[arg(long)]
    pub once: bool,
    #[arg(short, long, value_enum, default_value_t = Output::Text, requires_if("json", "once"))]
    pub output: Output,
}

const HELP: &str = "\
Keys: q quits, s sorts, / filters by name, p pauses a tenant or lets it go on, Enter shows its
processes, ? tells the others. NO_COLOR is respected.

Exit status:
  0; 1 if no daemon answers or the terminal fails; 2 if there is no terminal and no --once";

fn interval(text: &str) -> Result<Nanos, String> {
    let bounds = Nanos::from_millis(100)..=Nanos::from_millis(3_600_000);
    match text.parse::<Nanos>() {
        Ok(interval) if bounds.contains(&interval) => Ok(interval),
        Ok(_) => Err("a time from 100ms to 3600s is wanted".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::arguments::Arguments;

    #[test]
    fn what_makes_no_sense_is_refused_where_it_is_typed() {
        let fails = |line: &str| {
            let error = Arguments::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            error.to_string()
        };
        assert!(fails("ebb top --interval 1ms").contains("100ms"));
        assert!(fails("ebb top --interval 1").contains("20ms"));
        assert!(fails("ebb top -o json").contains("--once"));
        assert!(Arguments::try_parse_from("ebb top --once -o json --interval 200ms".split(' ')).is_ok());
        assert!(Arguments::try_parse_from("ebb top -o text".split(' ')).is_ok());
    }
}
