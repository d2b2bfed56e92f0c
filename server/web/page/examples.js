// Requests to start from. They were written for this page.
export const examples = [
  {
    name: 'Morning ferry (folk pop)',
    blocks: {
      global: 'Folk pop, medium tempo, G major, bright. Quiet and curious at first, wide and hopeful in the last chorus. Natural, close sound.',
      vocal: 'Warm female voice, mid register, unhurried, almost spoken in the verses; two soft harmonies in the choruses.',
      arrangement: 'Fingerpicked acoustic guitar alone in the intro. Piano from the first chorus, brushed drums and double bass from the second verse. The bridge drops to guitar and voice. Outro: guitar, slower.',
    },
    lyrics: '[intro]\n\n[verse]\nThe harbour wakes in shades of grey\nA rope lets go, the gulls reply\nI bought a ticket yesterday\nAnd did not tell the reason why\n\n[chorus]\nCarry me over, carry me slow\nThe water remembers what I have to know\n\n[verse]\nA coffee warms my folded hands\nThe engine hums an even line\nBehind us lie the smaller lands\nThe far side is no longer mine\n\n[chorus]\nCarry me over, carry me slow\nThe water remembers what I have to know\n\n[outro]',
    seconds: 120,
  },
  {
    name: 'Night shift (synth, fast)',
    blocks: {
      global: 'Synthwave / Electro Pop, fast, A minor, dark. Steady drive, tension before each chorus, release in it. Wide, glossy production.',
      vocal: 'Cool male voice, low register, clipped delivery; doubled an octave higher in the chorus.',
      arrangement: 'Pulsing synth bass and drums from the start. Arpeggios enter in the pre-chorus, a lead synth answers the voice in the chorus. Solo: lead synth over drums. Outro fades to the arpeggio.',
    },
    lyrics: '[intro]\n\n[verse]\nNeon on the window pane\nNumbers rolling down the wall\n\n[pre-chorus]\nTen more minutes, then the train\n\n[chorus]\nNight shift, night shift\nHolding up the sky\n\n[solo]\n\n[chorus]\nNight shift, night shift\nNever wonder why\n\n[outro]',
    seconds: 90,
  },
  {
    name: 'Snow on the roof (instrumental)',
    instrumental: true,
    blocks: {
      global: 'Ambient / Neoclassical, slow, F sharp minor, calm and sad, ends at peace. Soft, roomy sound.',
      vocal: '',
      arrangement: 'Piano over warm pads, no drums. Strings rise in the middle and leave again; the last bars are piano alone.',
    },
    lyrics: '',
    seconds: 60,
  },
  {
    name: 'For the demonstration model',
    free: 'fast, happy piano, pad, drums, in C major',
    lyrics: '[intro]\n[verse]\n[chorus]\n[outro]',
    seconds: 30,
  },
];
