package checkpoint

// Config holds the settings of every component. The names of the fields' origin
// stand beside them where they differ.
type Config struct {
	LanguageModel    LanguageModel
	DepthDecoder     DepthDecoder
	ConditionEncoder ConditionEncoder
	Transformer      Transformer
	Vocoder          Vocoder
	Scheduler        Scheduler
}

// LanguageModel is the Qwen3 model that writes one semantic code per frame.
type LanguageModel struct {
	VocabSize        int // vocab_size
	HiddenSize       int // hidden_size
	Layers           int // num_hidden_layers
	Heads            int // num_attention_heads
	KVHeads          int // num_key_value_heads; divides Heads
	HeadDim          int // head_dim, or HiddenSize / Heads
	IntermediateSize int // intermediate_size
	MaxPositions     int // max_position_embeddings

	RopeTheta         float64 // rope_parameters.rope_theta or rope_theta
	RMSNormEps        float64 // rms_norm_eps
	TieWordEmbeddings bool    // lm_head is embed_tokens

	// Token ids the reference holds as constants; a checkpoint with other ids
	// names them in its config.
	AudioEndID        int // audio_end_token_id: ends a song
	AudioCFGID        int // audio_cfg_token_id: fills the unconditional prompt
	AudioCodeOffset   int // audio_code_offset: id of semantic code 0
	AudioCodebookSize int // audio_codebook_size: count of semantic codes
}

// DepthDecoder writes the residual codes of one frame.
type DepthDecoder struct {
	HiddenSize       int
	Layers           int // num_layers
	Heads            int // num_attention_heads; divides HiddenSize
	IntermediateSize int
	AudioVocabSize   int // codes of one residual codebook
	Codebooks        int // num_codebooks, with the semantic one
	MaxPositions     int // max_position_embeddings
}

// ConditionEncoder brings the hiddens of the frames to the latents' timeline.
type ConditionEncoder struct {
	HiddenDim          int // condition_hidden_dim
	Layers             int // num_condition_layers: hiddens per frame
	OutDim             int
	InputSamplingRate  int // frames per second = InputSamplingRate / InputHopLength
	InputHopLength     int
	OutputSamplingRate int // latents per second = OutputSamplingRate / OutputHopLength
	OutputHopLength    int
}

// Transformer is the flow transformer over the latents.
type Transformer struct {
	InChannels   int // channels of the latents
	ConditionDim int
	Layers       int // num_layers
	Heads        int // num_attention_heads
	HeadDim      int // attention_head_dim
	FFInnerDim   int
	RotaryDim    int // leading dimensions of a head that rotate
	FourierDim   int // fourier_embedding_dim
}

// Vocoder turns latents into samples: the first half of the channels is the left
// side, the second half the right.
type Vocoder struct {
	LatentChannels   int
	DecoderInputDim  int
	DecoderHiddenDim int // channels before block 0; each block halves them
	UpsamplingRatios []int
	SamplingRate     int // samples per second
}

// Scheduler holds the settings of the flow matching times.
type Scheduler struct {
	Shift             float64
	NumTrainTimesteps int
	InvertSigmas      bool
}
