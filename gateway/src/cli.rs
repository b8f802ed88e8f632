//! The command line. The settings' flags come from [`KEYS`], everything else stands here.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, FromArgMatches, Parser, Subcommand};

use crate::config::{self, CONFIG_VARIABLE, ConfigError, KEYS, Key, Layers, Secrets};

const EXAMPLES: &str = "\
Examples:
  weir                                start with the defaults; nothing else is needed
  weir --config weir.toml             settings from a file
  weir --hls-segment 1s --cores 2     settings from flags
  WEIR_HLS_SEGMENT=1s weir            settings from the environment
  weir config > weir.toml             a file to start from
  weir publish clip.flv rtmp://127.0.0.1/live/test --loop

Publish:
  OBS      Settings > Stream > Custom: Server rtmp://HOST/live, Stream Key test
  ffmpeg   ffmpeg -re -i FILE -c:v libx264 -g 60 -c:a aac -f flv rtmp://HOST/live/test

Watch:
  browser  http://HOST:8080/live/test               page with a player
  HLS      http://HOST:8080/live/test/index.m3u8    low latency, fMP4
           http://HOST:8080/live/test.m3u8          TS segments
  FLV      http://HOST:8080/live/test.flv
  RTMP     rtmp://HOST/live/test

Operate:
  http://127.0.0.1:9090/    state, API and metrics

Exit codes: 0 stopped as asked, 1 could not start or failed, 2 wrong command line or configuration";

const ABOUT: &str =
    "A live-streaming gateway: RTMP in; HLS, Low-Latency HLS, HTTP-FLV and RTMP out";

#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    about = ABOUT,
    after_help = "`weir --help` shows examples and the addresses to type.",
    after_long_help = EXAMPLES,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    settings: Settings,
}

/// What was asked for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway; `weir` alone does the same
    Run {
        #[command(flatten)]
        settings: Settings,
    },
    /// Publish an FLV file to an RTMP address, at the speed of its timestamps
    Publish(Publish),
    /// Print the configuration in force as a TOML file, or the reference of all keys
    Config {
        /// Print the reference of all keys as Markdown instead
        #[arg(long)]
        reference: bool,
        /// Print keys and passwords, too
        #[arg(long)]
        secrets: bool,
        #[command(flatten)]
        settings: Settings,
    },
}

#[derive(Debug, Args)]
pub struct Publish {
    /// An FLV file
    pub file: PathBuf,
    /// Where to publish it, such as rtmp://127.0.0.1/live/test or rtmps://HOST/live/test
    pub url: String,
    /// Begin again at the end of the file, for ever
    #[arg(long = "loop")]
    pub endless: bool,
    /// With rtmps://, trust the certificate authorities in this PEM file instead of the machine's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// With rtmps://, take any certificate: what is sent is encrypted, but for whom is not known
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
}

/// Reads the process's command line. Wrong usage, `--help` and `--version` end the process here.
#[must_use]
pub fn parse() -> Command {
    let Cli { command, settings } = Cli::parse();
    command.unwrap_or(Command::Run { settings })
}

/// `weir config`: writes the reference, or the configuration in force, to stdout.
///
/// # Errors
/// When the configuration is not valid.
pub fn print_config(reference: bool, secrets: bool, settings: Settings) -> Result<(), ConfigError> {
    let secrets = if secrets { Secrets::Shown } else { Secrets::Hidden };
    let text = match reference {
        true => config::markdown(),
        false => config::toml(&settings.layers().load()?, secrets),
    };
    // A reader that has seen enough (`| head`) is no error.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(())
}

/// The configuration file and the flags of one invocation.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    file: Option<PathBuf>,
    flags: Vec<(&'static Key, String)>,
}

impl Settings {
    /// Together with the environment of the process.
    #[must_use]
    pub fn layers(self) -> Layers {
        let text = |os: OsString| os.to_string_lossy().into_owned();
        let env = std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
        Layers { file: self.file, env, flags: self.flags }
    }
}

const CONFIG: &str = "config";

impl Args for Settings {
    fn augment_args(command: clap::Command) -> clap::Command {
        let file = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help(format!("Read settings from this TOML file [env: {CONFIG_VARIABLE}]"));
        command.next_help_heading("Settings").arg(file).args(KEYS.iter().map(flag))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

fn flag(key: &'static Key) -> Arg {
    let end = key.about.find(". ").unwrap_or(key.about.len());
    let short = key.about.get(..end).unwrap_or(key.about).trim_end_matches('.');
    let (default, variable) = (key.default(), key.variable());
    Arg::new(key.name)
        .long(key.long())
        .value_name(key.kind.placeholder())
        .help(format!("{short} [default: {default}]"))
        .long_help(format!("{}\n[default: {default}] [env: {variable}]", key.about))
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |key: &'static Key| {
            let text = matches.get_one::<String>(key.name)?;
            Some((key, text.clone()))
        };
        Ok(Self {
            file: matches.get_one::<PathBuf>(CONFIG).cloned(),
            flags: KEYS.iter().filter_map(given).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parsed(line: &str) -> Command {
        let Cli { command, settings } = Cli::try_parse_from(line.split(' ')).unwrap();
        command.unwrap_or(Command::Run { settings })
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn run_is_the_default_command() {
        for line in
            ["weir --config a.toml --hls-part 100ms", "weir run --config a.toml --hls-part 100ms"]
        {
            let Command::Run { settings } = parsed(line) else { panic!("{line}") };
            assert_eq!(settings.file, Some("a.toml".into()));
            let flags: Vec<_> = settings.flags.iter().map(|(k, v)| (k.name, v.as_str())).collect();
            assert_eq!(flags, [("hls.part", "100ms")]);
        }
        let Command::Publish(publish) = parsed("weir publish a.flv rtmp://h/live/n --loop") else {
            panic!("not publish")
        };
        assert!(publish.endless);
    }
}
