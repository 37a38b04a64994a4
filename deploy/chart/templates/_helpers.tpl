{{/* The prefix of all names. */}}
{{- define "dryrack.fullname" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $chart .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $chart | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{/* The name of a part: its value `name`, or a suffix after the prefix. */}}
{{- define "dryrack.name" -}}
{{- $values := index .root.Values .part -}}
{{ $values.name | default (printf "%s-%s" (include "dryrack.fullname" .root) .part) }}
{{- end }}

{{/* Deployments cannot change their selector, so it does not contain versions or labels of values. */}}
{{- define "dryrack.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Values.nameOverride | default .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- if .part }}
app.kubernetes.io/component: {{ .part }}
{{- end }}
{{- end }}

{{- define "dryrack.labels" -}}
{{ include "dryrack.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- if .part }}
{{- with (index .root.Values .part).labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* The options --print-rbac render roles without a release, and so without labels. */}}
{{- define "dryrack.labelsBlock" -}}
{{- if .root.Release.Service -}}
labels:
  {{- include "dryrack.labels" . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "dryrack.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end }}

{{/* The drivers of the plugin, as a JSON list: those of the device kinds, and plugin.drivers. */}}
{{- define "dryrack.drivers" -}}
{{- $kinds := .Files.Get "files/device-kinds.yaml" | fromYaml -}}
{{- $drivers := .Values.plugin.drivers -}}
{{- range .Values.plugin.devices -}}
{{- with get $kinds (regexFind "^[^:,]+" .) -}}
{{- $drivers = append $drivers .driver -}}
{{- end -}}
{{- end -}}
{{ $drivers | uniq | sortAlpha | toJson }}
{{- end }}

{{/* The first part of a pod template, up to the security context. */}}
{{- define "dryrack.podTemplate" -}}
{{- $root := .root -}}
{{- $values := index $root.Values .part -}}
metadata:
  labels:
    {{- include "dryrack.selectorLabels" . | nindent 4 }}
    {{- range $labels := list $root.Values.commonLabels $values.labels }}
    {{- with $labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
  {{- $annotations := $values.podAnnotations -}}
  {{- with .checksum }}
  {{- $annotations = merge (dict "checksum/config" (sha256sum .)) $annotations }}
  {{- end }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ .account | default (include "dryrack.name" .) }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $values.affinity }}
  affinity:
    {{- toYaml $values.affinity | nindent 4 }}
  {{- else if $root.Values.avoidVirtualNodes }}
  # KWOK reports every Pod on its nodes as running, and runs none of them.
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: kwok.x-k8s.io/node, operator: DoesNotExist}
          - {key: type, operator: NotIn, values: [kwok]}
  {{- end }}
{{- end }}

{{/* Container fields that are the same for each part. */}}
{{- define "dryrack.container" -}}
{{- $values := index .root.Values .part -}}
image: {{ include "dryrack.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- with $values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What the Pod Security Standard restricted requires. */}}
{{- define "dryrack.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "dryrack.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* A Deployment that runs as a normal user, and what belongs to it. */}}
{{- define "dryrack.deployment" -}}
{{- $values := index .root.Values .part }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "dryrack.name" . }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "dryrack.labelsBlock" . | nindent 2 }}
spec:
  replicas: {{ $values.replicas }}
  selector:
    matchLabels:
      {{- include "dryrack.selectorLabels" . | nindent 6 }}
  template:
    {{- include "dryrack.podTemplate" . | nindent 4 }}
      {{- include "dryrack.podSecurity" . | nindent 6 }}
      containers:
      - name: {{ .part }}
        {{- include "dryrack.container" . | nindent 8 }}
        args:
          {{- concat .args $values.extraArgs | toYaml | nindent 10 }}
        ports:
        {{- range .ports }}
        - {name: {{ .name }}, containerPort: {{ .port }}}
        {{- end }}
        startupProbe:
          httpGet: {path: /healthz, port: {{ .healthPort }}}
          periodSeconds: 1
          failureThreshold: 60
        livenessProbe:
          httpGet: {path: /healthz, port: {{ .healthPort }}}
        readinessProbe:
          httpGet: {path: {{ .readyPath }}, port: {{ .healthPort }}}
          periodSeconds: 5
        {{- include "dryrack.containerSecurity" . | nindent 8 }}
        {{- with .volumeMounts }}
        volumeMounts:
          {{- toYaml . | nindent 10 }}
        {{- end }}
      {{- with .volumes }}
      volumes:
        {{- toYaml . | nindent 8 }}
      {{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "dryrack.name" . }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "dryrack.labelsBlock" . | nindent 2 }}
spec:
  selector:
    {{- include "dryrack.selectorLabels" . | nindent 4 }}
  ports:
  {{- range .ports }}
  - {name: {{ .name }}, port: {{ .port }}, targetPort: {{ .name }}}
  {{- end }}
{{- if and $values.podDisruptionBudget.enabled (gt (int $values.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "dryrack.name" . }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "dryrack.labelsBlock" . | nindent 2 }}
spec:
  minAvailable: {{ $values.podDisruptionBudget.minAvailable }}
  selector:
    matchLabels:
      {{- include "dryrack.selectorLabels" . | nindent 6 }}
{{- end }}
{{- include "dryrack.network" . }}
{{- end }}

{{/* The NetworkPolicy of a part, and the monitor of its port `metrics`. */}}
{{- define "dryrack.network" -}}
{{- if .root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "dryrack.name" . }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "dryrack.labelsBlock" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "dryrack.selectorLabels" . | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
  - ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ .port }}}
    {{- end }}
    {{- with .root.Values.networkPolicy.from }}
    from:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}
{{- if and .root.Values.serviceMonitor.enabled .metrics }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "dryrack.name" . }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "dryrack.labelsBlock" . | nindent 2 }}
    {{- with .root.Values.serviceMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "dryrack.selectorLabels" . | nindent 6 }}
  endpoints:
  - port: metrics
    interval: {{ .root.Values.serviceMonitor.interval }}
{{- end }}
{{- end }}
