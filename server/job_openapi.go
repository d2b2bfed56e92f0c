package server

import (
	"maps"
	"strings"

	"skald/host/audio"
	"skald/server/jobs"
	"skald/server/request"
)

// jobPaths describes the routes of jobs.
func jobPaths() object {
	id := object{"name": "id", "in": "path", "required": true, "schema": object{"type": "string"}}
	query := func(name, about string, schema object) object {
		return object{"name": name, "in": "query", "description": about, "schema": schema}
	}
	operation := func(name, summary string, responses object, parameters ...object) object {
		return object{"operationId": name, "summary": summary, "responses": responses, "parameters": parameters}
	}
	one := func(codes ...int) object { return merge(object{"200": reply200("Job")}, failures(codes...)) }
	create := operation("createJob", "Accepts a song to be made, whether or not the caller stays.",
		merge(object{"202": content("Accepted: it survives a crash of the server.", "Job")}, failures(400, 401, 404, 409, 413, 415, 429, 503)),
		object{"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string", "maxLength": maxIdempotencyKey},
			"description": "The same key with the same body gives the same job."})
	create["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": ref("JobRequest")}}}
	return object{
		"/v1/music/jobs": object{
			"post": create,
			"get": operation("listJobs", "Lists jobs, the newest first.",
				merge(object{"200": reply200("Jobs")}, failures(400, 401, 404, 503)),
				query("limit", "Jobs on a page.", object{"type": "integer", "minimum": 1, "maximum": mostPage, "default": usualPage}),
				query("after", "Id of the last job of the page before.", object{"type": "string"}),
				query("status", "Only jobs in one of these states, separated by commas.", object{"type": "string"})),
		},
		"/v1/music/jobs/{id}": object{
			"get":    operation("getJob", "Describes a job.", one(400, 401, 404, 503), id),
			"delete": operation("deleteJob", "Removes a job and its song; a running one ends.", merge(object{"200": reply200("JobDeleted")}, failures(400, 401, 404, 503)), id),
		},
		"/v1/music/jobs/{id}/cancel": object{"post": operation("cancelJob", "Ends a job without a song.", one(400, 401, 404, 409, 503), id)},
		"/v1/music/jobs/{id}/finish": object{"post": operation("finishJob", "Ends the song now and keeps what was sung so far.", one(400, 401, 404, 409, 503), id)},
		"/v1/music/jobs/{id}/events": object{"get": operation("watchJob", "Tells of every change of a job, until it ends.",
			merge(object{
				"200": object{"description": "Events of the types status, progress and deleted, whose data is the Job as it is then, without its request.",
					"content": object{"text/event-stream": object{"schema": object{"type": "string"}}}},
				"204": object{"description": "Nothing will change any more after the event named by Last-Event-ID."},
			}, failures(400, 401, 404, 503)), id,
			object{"name": "Last-Event-ID", "in": "header", "schema": object{"type": "string"},
				"description": "The last event that was read, to go on after it."})},
		"/v1/music/jobs/{id}/audio": object{"get": operation("getJobAudio", "The song, or what there is of it so far.",
			merge(jobSong(), failures(400, 401, 404, 409, 503)), id,
			query("format", "Encoding; else that of the job.", object{"type": "string", "enum": request.Formats()}),
			query("sample_rate", "In Hz; else that of the job.", object{"type": "integer", "minimum": request.MinSampleRate, "maximum": request.MaxSampleRate}))},
	}
}

func jobSong() object {
	forms := object{}
	for _, c := range audio.Containers() {
		media, _, _ := strings.Cut(c.MediaType(), ";")
		forms[media] = object{} // bytes
	}
	headers := object{"Skald-Complete": object{"description": "Whether it is the whole song.", "schema": object{"type": "string"}}}
	return object{
		"200": object{"description": "The song.", "content": forms, "headers": headers},
		"206": object{"description": "The part of the song that Range asked for.", "content": forms, "headers": headers},
		"304": object{"description": "The song is what If-None-Match named."},
		"416": object{"description": "The Range lies beyond the song."},
	}
}

// jobSchemas are those that jobPaths refers to.
func jobSchemas(rules request.Rules) object {
	rules.Source = func(string) (request.Understood, error) { return request.Understood{}, nil }
	job := schemaOf[jobObject]()
	statuses := []string{}
	for _, s := range jobs.Statuses() {
		statuses = append(statuses, string(s))
	}
	maps.Copy(job["properties"].(object)["status"].(object), object{"enum": statuses})
	return object{
		"JobRequest": rules.Schema(), "Job": job, "Jobs": schemaOf[jobList](), "JobDeleted": schemaOf[jobDeleted](),
	}
}
