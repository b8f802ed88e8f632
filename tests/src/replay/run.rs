//! Doing what a script says.

use std::thread;
use std::time::{Duration, Instant};

use super::actor::Actor;
use super::expect::expect;
use super::number::{Env, Number};
use super::payload;
use super::scan::Text;
use super::send::{
    begin, greeting, push_chunk, push_command, push_frames, push_headers, push_message, split,
};
use super::step::{Case, Step, Verb};
use super::watch::Watch;
use super::{Failure, Target};

/// How long an expectation waits where the script does not say.
const WITHIN: Duration = Duration::from_secs(15);

/// Runs one case with connections of its own.
///
/// # Errors
/// The first expectation that was not met.
pub fn case(case: &Case, target: &Target) -> Result<(), Failure> {
    let mut run = Run::new(target).map_err(|came| Failure::new(None, came))?;
    for step in &case.steps {
        run.step(step)?;
    }
    run.actors.iter_mut().for_each(|actor| actor.flush(None));
    let cut = run.actors.iter().any(|actor| actor.peer().is_over() && !actor.end_was_expected);
    match case.steps.last().filter(|_| cut) {
        Some(last) => Err(Failure::new(Some(last), "the gateway closed the connection".into())),
        None => Ok(()),
    }
}

struct Run<'a> {
    target: &'a Target,
    env: Env,
    actors: Vec<Actor>,
    watch: Option<Watch>,
    /// The one connection that statements act on, if not all do.
    only: Option<usize>,
    /// `repeat`s that are open.
    depth: usize,
    seed: u64,
}

impl<'a> Run<'a> {
    fn new(target: &'a Target) -> Result<Self, String> {
        let env = Env {
            app: target.app.clone(),
            key: target.key.clone(),
            url: format!("rtmp://{}/{}", target.rtmp, target.app),
            ..Env::default()
        };
        let actors = vec![Actor::connect(target.rtmp)?];
        Ok(Self { target, env, actors, watch: None, only: None, depth: 0, seed: 1 })
    }

    fn step(&mut self, step: &Step) -> Result<(), Failure> {
        let failure = |came| Failure::new(Some(step), came);
        match &step.verb {
            Verb::Repeat(count, body) => self.repeat(count, body),
            Verb::Connections(count) => {
                let count = count.value(&self.env) as usize;
                while self.actors.len() < count {
                    self.actors.push(Actor::connect(self.target.rtmp).map_err(failure)?);
                }
                Ok(())
            }
            Verb::On(only) => {
                self.only = only.as_ref().map(|number| number.value(&self.env) as usize);
                if self.only.is_some_and(|only| only >= self.actors.len()) {
                    return Err(failure("there is no such connection".into()));
                }
                Ok(())
            }
            Verb::Watch(path) => self.start_watch(path.as_ref()).map_err(failure),
            Verb::Pause(time) => {
                self.actors.iter_mut().for_each(|actor| actor.flush(None));
                thread::sleep(*time);
                Ok(())
            }
            verb => {
                let one = self.only.map(|only| only..only + 1);
                for index in one.unwrap_or(0..self.actors.len()) {
                    self.env.connection = index as u64;
                    self.act(index, verb).map_err(failure)?;
                    if self.depth == 0 && !self.actors[index].corked {
                        self.actors[index].flush(None);
                    }
                }
                Ok(())
            }
        }
    }

    fn repeat(&mut self, count: &Number, body: &[Step]) -> Result<(), Failure> {
        let outer = self.env.turn;
        self.depth += 1;
        for turn in 0..count.value(&self.env) {
            // Nobody listens any more: what is to be expected stands behind the loop.
            if self.actors.iter().all(|actor| actor.peer().is_over()) {
                break;
            }
            self.env.turn = turn;
            body.iter().try_for_each(|step| self.step(step))?;
        }
        self.depth -= 1;
        self.env.turn = outer;
        if self.depth == 0 {
            let open = self.actors.iter_mut().filter(|actor| !actor.corked);
            open.for_each(|actor| actor.flush(None));
        }
        Ok(())
    }

    fn start_watch(&mut self, path: Option<&Text>) -> Result<(), String> {
        let http = self.target.http.ok_or("watch needs --http ADDRESS")?;
        let path = path.map_or_else(|| self.target.path(), |path| path.render(&self.env));
        self.actors.iter_mut().for_each(|actor| actor.flush(None));
        let mut watch = Watch::start(http, &path)?;
        watch.begin(Instant::now() + WITHIN)?;
        self.watch = Some(watch);
        Ok(())
    }

    fn act(&mut self, index: usize, verb: &Verb) -> Result<(), String> {
        let Self { actors, env, target, .. } = self;
        let actor = &mut actors[index];
        let by = Instant::now() + WITHIN;
        let address = |path: &Option<Text>| match path {
            Some(path) => split(&path.render(env)),
            None => (target.app.clone(), target.key.clone()),
        };
        match verb {
            Verb::Handshake(step) => {
                let greeting = greeting(step, env, self.seed);
                self.seed += 1;
                return actor.greet(greeting, by);
            }
            Verb::Bytes(items) => actor.push(&payload::bytes(items, env)),
            Verb::Chunk(chunk) => push_chunk(actor, chunk, env),
            Verb::Message(message) => push_message(actor, message, env),
            Verb::ChunkSize(size) => actor.set_chunk_size(size.u32(env)),
            Verb::Command(command) => push_command(actor, command, env),
            Verb::Connect(app) | Verb::Open(app) => {
                let app = app.as_ref().map_or_else(|| target.app.clone(), |app| app.render(env));
                let url = format!("rtmp://{}/{app}", target.rtmp);
                self.seed += 1;
                return match verb {
                    Verb::Open(_) => actor.open(&app, &url, self.seed, by),
                    _ => actor.enter(&app, &url, self.seed, by),
                };
            }
            Verb::Publish(path) => {
                let (app, key) = address(path);
                return begin(actor, "publish", &app, &key, target.rtmp, by);
            }
            Verb::Play(path) => {
                let (app, key) = address(path);
                return begin(actor, "play", &app, &key, target.rtmp, by);
            }
            Verb::Headers => push_headers(actor),
            Verb::Frames(frames) => push_frames(actor, frames, env),
            Verb::Sync => return actor.sync(by),
            Verb::Cork => actor.corked = true,
            Verb::Uncork(split) => {
                actor.corked = false;
                actor.flush(split.as_ref().map(|split| split.value(env) as usize));
            }
            Verb::Finish => {
                actor.flush(None);
                actor.peer().finish();
            }
            Verb::Close | Verb::Reset => {
                actor.flush(None);
                let fresh = Actor::connect(target.rtmp)?;
                let old = std::mem::replace(actor, fresh);
                if matches!(verb, Verb::Reset) {
                    old.reset();
                }
            }
            Verb::Expect(what, within) => {
                let by = Instant::now() + within.unwrap_or(WITHIN);
                return expect(actor, self.watch.as_mut(), what, env, by);
            }
            Verb::Repeat(..)
            | Verb::Connections(_)
            | Verb::On(_)
            | Verb::Watch(_)
            | Verb::Pause(_) => {}
        }
        Ok(())
    }
}
